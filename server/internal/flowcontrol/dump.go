package flowcontrol

import (
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/levelwire/levelwire/server/internal/flowcontrol/fairqueue"
)

// DumpPath is where the state of all levels is served, as kube-apiserver serves it.
const DumpPath = "/debug/api_priority_and_fairness/"

// Dump returns the handler of a page below DumpPath; nil if there is none of that name.
func (c *Controller) Dump(name string) http.HandlerFunc {
	var write func(io.Writer, []fairqueue.LevelStats)
	switch name {
	case "dump_priority_levels":
		write = dumpLevels
	case "dump_queues":
		write = dumpQueues
	case "dump_requests":
		write = dumpRequests
	default:
		return nil
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		table := tabwriter.NewWriter(w, 8, 0, 1, ' ', 0)
		write(table, c.seats.Stats(true))
		_ = table.Flush() // the client has gone
	}
}

// dumpLevels writes the columns that kube-apiserver has. No level is quiescing: one that
// is deleted is not shown anymore.
func dumpLevels(w io.Writer, levels []fairqueue.LevelStats) {
	fmt.Fprintln(w, "PriorityLevelName,\tActiveQueues,\tIsIdle,\tIsQuiescing,\tWaitingRequests,\tExecutingRequests,\tDispatchedRequests,\tRejectedRequests,\tTimedoutRequests,\tCancelledRequests")
	for _, level := range levels {
		queues, waiting, executing := 0, 0, 0
		var dispatched uint64
		var r fairqueue.Rejections
		for _, f := range level.Flows {
			if f.Waiting > 0 {
				queues++
			}
		}
		for _, s := range level.Schemas {
			waiting, executing, dispatched = waiting+s.Waiting, executing+s.Executing, dispatched+s.Dispatched
			r.QueueFull += s.Rejected.QueueFull + s.Rejected.ConcurrencyLimit
			r.Timeout += s.Rejected.Timeout
			r.Cancelled += s.Rejected.Cancelled
		}
		fmt.Fprintf(w, "%s,\t%d,\t%v,\t%v,\t%d,\t%d,\t%d,\t%d,\t%d,\t%d\n",
			level.Name, queues, waiting+executing == 0, false, waiting, executing, dispatched, r.QueueFull, r.Timeout, r.Cancelled)
	}
}

// dumpQueues writes a line for each flow that holds seats or waits: each has its queue.
func dumpQueues(w io.Writer, levels []fairqueue.LevelStats) {
	fmt.Fprintln(w, "PriorityLevelName,\tFlowSchemaName,\tFlowDistinguisher,\tPendingRequests,\tSeatsInUse,\tLongestWait")
	for _, level := range levels {
		for _, f := range level.Flows {
			fmt.Fprintf(w, "%s,\t%s,\t%q,\t%d,\t%d,\t%v\n", level.Name, f.Schema, f.Key, f.Waiting, f.Seats, f.Longest.Round(time.Millisecond))
		}
	}
}

// dumpRequests writes a line for each request that waits, in the columns that
// kube-apiserver has. The index of the queue is that of the flow in its level. Requests
// that are executed are in none of its lines: of them, only the seats are known.
func dumpRequests(w io.Writer, levels []fairqueue.LevelStats) {
	fmt.Fprintln(w, "PriorityLevelName,\tFlowSchemaName,\tQueueIndex,\tRequestIndexInQueue,\tFlowDistingsher,\tArriveTime,\tInitialSeats,\tFinalSeats,\tAdditionalLatency,\tStartTime")
	for _, level := range levels {
		for queue, f := range level.Flows {
			for i, r := range f.Requests {
				fmt.Fprintf(w, "%s,\t%s,\t%d,\t%d,\t%q,\t%s,\t%d,\t0,\t0s,\t%s\n",
					level.Name, f.Schema, queue, i, f.Key, r.Since.UTC().Format(time.RFC3339Nano), r.Seats, time.Time{}.Format(time.RFC3339Nano))
			}
		}
	}
}
