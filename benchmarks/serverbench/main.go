package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/levelwire/levelwire/benchmarks/serverbench/baretls"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/stormclients"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"k8s.io/klog/v2"
)

// groups is all there is to measure, in the order of the report.
func groups(p *plan) []*group {
	return []*group{
		fillGroup(), memoryGroup(), listGroup(), streamGroup(), concurrentGroup(), writeGroup(),
		fanoutGroup(), sustainGroup(), slowGroup(), selectorsGroup(), dispatchGroup(), idleGroup(), scalingGroup(p),
		stormGroup(p),
	}
}

// roles are what a child process can be, each the whole work of one.
var roles = map[string]process.Role{
	"seed":   seed,
	"etcd":   tested.ServeEtcd,
	"peer":   tested.ServeUpstream,
	"bare":   baretls.Serve,
	"sink":   baretls.Sink,
	"get":    get,
	"create": create,
	"puts":   puts,
	"crowd":  crowd, "writer": writer, "spread": baretls.Spread, "drain": baretls.Drain,
	"herd": stormclients.RunHerd, "library": stormclients.RunLibrary, "forget": forget,
}

func main() {
	klog.SetLogger(klog.Logger{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "serverbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) == 3 && os.Args[1] == process.AsRole {
		return process.BeRole(ctx, roles, os.Args[2])
	}
	var p plan
	var sides, rows string
	flag.IntVar(&p.pods, "pods", 200_000, "pods that the servers hold")
	flag.IntVar(&p.repeat, "repeat", 3, "how often everything is measured; what takes upstream minutes is measured once")
	flag.IntVar(&p.informers, "informers", 2000, "informers in storms")
	flag.IntVar(&p.everything, "everything", 20, "how many of them watch all pods, and not those of a node")
	flag.StringVar(&sides, "sides", tested.Ours+","+tested.Upstream, "the servers to measure")
	flag.StringVar(&rows, "rows", "", "the groups to measure; empty: all but storm")
	flag.StringVar(&p.report, "report", "", "the page whose results are replaced, of those groups that were measured with both servers; empty: none")
	flag.StringVar(&p.data, "data", "", "a file for what was measured, as JSON; empty: none")
	flag.StringVar(&p.levelwire, "levelwire", "bin/levelwire", "the program whose server is measured")
	flag.StringVar(&p.profiles, "profiles", "", "a folder for profiles of our server's processor time, one for each row; they cost a little time")
	flag.Parse()
	p.sides, p.groups = split(sides), split(rows)
	return p.run(ctx)
}

// split is a list of words between commas.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
