package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/internal/debugapi"
)

// topView draws what levelwire top shows.
type topView struct {
	rows    int
	colours cli.Colours
	out     strings.Builder
}

// draw returns the screen for a sample, and the one before, if there is one: counters
// are then rates between the two, and otherwise rates since the server's start.
func (v *topView) draw(before, now *topSample) string {
	v.out.Reset()
	since := now.interval(before)
	v.header(before, now, since)
	v.requests(before, now, since)
	if now.watchers != nil {
		v.watchers(now.watchers)
	} else {
		v.watchesByResource(now)
	}
	if now.logs != nil {
		v.logs(now.logs)
	} else {
		v.objects(now)
	}
	v.programs(now.programs)
	return v.out.String()
}

// interval is the seconds that counters are divided by.
func (s *topSample) interval(before *topSample) float64 {
	if before != nil {
		return max(s.at.Sub(before.at).Seconds(), 0.001)
	}
	if started := s.metrics.total("process_start_time_seconds"); started > 0 {
		return max(float64(s.at.UnixMilli())/1000-started, 1)
	}
	return 1
}

// line writes a line that ends what was there before.
func (v *topView) line(text string) {
	v.out.WriteString(text)
	if v.colours {
		v.out.WriteString("\x1b[K")
	}
	v.out.WriteByte('\n')
}

// heading begins a table.
func (v *topView) heading(format string, columns ...any) {
	v.line("")
	v.line(v.colours.In(cli.Bold, fmt.Sprintf(format, columns...)))
}

func (v *topView) header(before, now *topSample, since float64) {
	m := now.metrics
	processor := m.total("process_cpu_seconds_total")
	if before != nil {
		processor -= before.metrics.total("process_cpu_seconds_total")
	}
	v.line(fmt.Sprintf("%s  %s", v.colours.In(cli.Bold, now.host), now.at.Format(time.TimeOnly)))
	text := fmt.Sprintf("processor %.0f%%  memory %s  requests running %.0f", 100*processor/since,
		cli.Mebibytes(int64(m.total("process_resident_memory_bytes"))), m.total("apiserver_current_inflight_requests"))
	if now.logs != nil {
		saved := int64(0)
		for _, log := range now.logs.Resources {
			saved += log.Resumes.ListsSaved()
		}
		text += fmt.Sprintf("  version %d  watches %d  lists saved %d", now.logs.Revision, now.logs.Watchers, saved)
	}
	v.line(text)
}

// requestRow is a row of the requests.
type requestRow struct {
	name                  string
	count, seconds, error float64
}

// requests shows which requests take the server's time. Watches are not among them:
// they last.
func (v *topView) requests(before, now *topSample, since float64) {
	const duration, total = "apiserver_request_duration_seconds", "apiserver_request_total"
	labels := []string{"verb", "group", "resource", "subresource"}
	counts, seconds := now.metrics.sum(duration, labels...), now.metrics.seconds(duration, labels...)
	failed := now.metrics.failed(total, labels)
	if before != nil {
		subtract(counts, before.metrics.sum(duration, labels...))
		subtract(seconds, before.metrics.seconds(duration, labels...))
		subtract(failed, before.metrics.failed(total, labels))
	}
	var rows []requestRow
	for name, count := range counts {
		if count > 0 && !strings.HasPrefix(name, "WATCH") && !strings.HasPrefix(name, "CONNECT") {
			rows = append(rows, requestRow{name, count, seconds[name], failed[name]})
		}
	}
	slices.SortFunc(rows, func(a, b requestRow) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), strings.Compare(a.name, b.name))
	})
	v.heading("%-52s %10s %10s %10s", "REQUESTS, BY TIME", "PER SEC", "MEAN", "5XX")
	for _, r := range rows[:min(len(rows), v.rows)] {
		mean := time.Duration(r.seconds / r.count * float64(time.Second))
		text := fmt.Sprintf("%-52s %10.1f %10s %10.0f", shortened(r.name, 52), r.count/since, roundDuration(mean), r.error)
		if r.error > 0 {
			text = v.colours.In(cli.Red, text)
		}
		v.line(text)
	}
}

// failed counts the requests that the server failed.
func (m metricSet) failed(name string, labels []string) map[string]float64 {
	sums := map[string]float64{}
	for _, metric := range m[name].GetMetric() {
		if strings.HasPrefix(key(metric, []string{"code"}), "5") {
			sums[key(metric, labels)] += value(metric)
		}
	}
	return sums
}

func subtract(from, what map[string]float64) {
	for name, n := range what {
		from[name] -= n
	}
}

// clientRow is all watches of one client.
type clientRow struct {
	name            string
	watches, behind int
	lag             int64
	events, bytes   int64
}

// watchers shows watches by client, those that are behind first.
func (v *topView) watchers(w *debugapi.Watchers) {
	byClient := map[string]*clientRow{}
	for i := range w.Items {
		item := &w.Items[i]
		name := item.User
		if agent, _, _ := strings.Cut(item.Agent, " "); agent != "" {
			name += " " + agent
		}
		row := byClient[name]
		if row == nil {
			row = &clientRow{name: name}
			byClient[name] = row
		}
		row.watches++
		row.behind += item.LagEvents
		row.lag = max(row.lag, item.LagMillis)
		row.events += item.Events
		row.bytes += item.Bytes
	}
	var rows []*clientRow
	for _, row := range byClient {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *clientRow) int {
		return cmp.Or(cmp.Compare(b.behind, a.behind), cmp.Compare(b.watches, a.watches), strings.Compare(a.name, b.name))
	})
	v.heading("%-52s %8s %8s %8s %10s %10s", "WATCHES, BY CLIENT", "OPEN", "BEHIND", "LAG", "EVENTS", "SENT")
	for _, r := range rows[:min(len(rows), v.rows)] {
		lag := "-"
		if r.lag > 0 {
			lag = roundDuration(time.Duration(r.lag) * time.Millisecond)
		}
		text := fmt.Sprintf("%-52s %8d %8d %8s %10d %10s", shortened(r.name, 52), r.watches, r.behind, lag, r.events, cli.Mebibytes(r.bytes))
		if r.lag >= 1000 {
			text = v.colours.In(cli.Yellow, text)
		}
		v.line(text)
	}
	if w.Total > len(w.Items) {
		v.line(fmt.Sprintf("and %d watches more", w.Total-len(w.Items)))
	}
}

// logs shows what the objects and the event log of each resource take.
func (v *topView) logs(l *debugapi.Logs) {
	rows := slices.Clone(l.Resources)
	slices.SortFunc(rows, func(a, b debugapi.Log) int {
		return cmp.Or(cmp.Compare(b.ObjectBytes+b.LogBytes+b.FormBytes, a.ObjectBytes+a.LogBytes+a.FormBytes), strings.Compare(a.Resource, b.Resource))
	})
	v.heading("%-38s %9s %10s %8s %10s %10s %8s %8s", "MEMORY, BY RESOURCE", "OBJECTS", "SIZE", "LOG", "LOG SIZE", "REACHES", "WATCHES", "EXPIRED")
	for i := range rows[:min(len(rows), v.rows)] {
		r := &rows[i]
		name, reaches := r.Resource, "-"
		if r.Group != "" {
			name += "." + r.Group
		}
		if r.OldestTime != nil {
			reaches = roundDuration(l.Now.Sub(*r.OldestTime))
		}
		v.line(fmt.Sprintf("%-38s %9d %10s %8d %10s %10s %8d %8d", shortened(name, 38), r.Objects, cli.Mebibytes(r.ObjectBytes), r.Events, cli.Mebibytes(r.LogBytes), reaches, r.Watchers, r.Expired))
	}
}

// watchesByResource is what the metrics of any Kubernetes have.
func (v *topView) watchesByResource(s *topSample) {
	watches := map[string]float64{}
	for _, metric := range s.metrics["apiserver_longrunning_requests"].GetMetric() {
		if key(metric, []string{"verb"}) == "WATCH" {
			watches[key(metric, []string{"group", "resource"})] += value(metric)
		}
	}
	v.counts("WATCHES, BY RESOURCE", "OPEN", watches)
}

func (v *topView) objects(s *topSample) {
	name := "apiserver_resource_objects"
	if !s.metrics.has(name) {
		name = "apiserver_storage_objects" // until Kubernetes 1.33
	}
	v.counts("OBJECTS, BY RESOURCE", "STORED", s.metrics.sum(name, "group", "resource"))
}

// counts shows numbers, the largest first.
func (v *topView) counts(title, column string, counts map[string]float64) {
	names := make([]string, 0, len(counts))
	for name, n := range counts {
		if n > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	v.heading("%-52s %10s", title, column)
	for _, name := range names[:min(len(names), v.rows)] {
		v.line(fmt.Sprintf("%-52s %10.0f", shortened(name, 52), counts[name]))
	}
}

// shortened cuts text to a width, and makes it printable.
func shortened(text string, width int) string {
	text = cli.Printable(text)
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}

// roundDuration shows three digits.
func roundDuration(d time.Duration) string {
	for unit := time.Nanosecond; ; unit *= 10 {
		if d/unit < 1000 {
			return d.Round(unit).String()
		}
	}
}
