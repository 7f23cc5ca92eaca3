package filewatch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// interval is how often the files are read. They are small, so that comparing them
// costs less than it would to miss a change that a file system's times do not show:
// Kubernetes replaces mounted files by changing a symbolic link.
const interval = time.Second

// Watcher reads files again when they change. Watch is called before Run, and neither
// concurrently with the other.
type Watcher struct {
	groups  []*group
	log     *slog.Logger
	reloads *prometheus.CounterVec
	last    *prometheus.GaugeVec

	mu    sync.Mutex
	stats map[string]Stats // by flag
}

// Stats says how often the files of a flag have changed while the server ran, by whether
// the new content could be used, and when that was last.
type Stats struct {
	Succeeded, Failed        int
	LastSuccess, LastFailure time.Time
	// Hash identifies the content in force, "" before Watch: SHA-256 of all files.
	Hash string
}

// group are the files of one flag, which are used together: a certificate and its key.
type group struct {
	flag  string
	paths []string
	apply func(contents [][]byte) error
	seen  [sha256.Size]byte // what the files held when they were last tried
	// failure is the error of using what was seen, "" if it is in force. It may be the fault of
	// another file, and is then mended by that one's change.
	failure string
	// separate says that apply may take long, and depends on no other file.
	separate bool
}

// New returns a Watcher that logs to log.
func New(log *slog.Logger) *Watcher {
	return &Watcher{
		log:   log,
		stats: map[string]Stats{},
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "levelwire_config_reloads_total",
			Help: "Configured files that have changed while the server ran, by flag, and whether the new content could be used (result: success or failure).",
		}, []string{"flag", "result"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "levelwire_config_last_reload_timestamp_seconds",
			Help: "When that happened last, as seconds since 1970.",
		}, []string{"flag", "result"}),
	}
}

// Collectors returns the metrics of reloads.
func (w *Watcher) Collectors() []prometheus.Collector {
	return []prometheus.Collector{w.reloads, w.last}
}

// Stats returns the counts of a flag.
func (w *Watcher) Stats(flag string) Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats[flag]
}

// Watch reads files and calls apply with their contents, in the order of the paths,
// now and, while Run runs, whenever one of them has changed. If apply returns an error,
// it must leave in force what was there before. Calls of apply do not overlap, and delay
// all other files. Watch returns the first call's error, which names the flag.
func (w *Watcher) Watch(flag string, paths []string, apply func(contents [][]byte) error) error {
	return w.watch(&group{flag: flag, paths: slices.Clone(paths), apply: apply})
}

// WatchSeparately is Watch for an apply that may take long and whose result depends on no
// other file. Its calls delay no other file, and so they overlap with those for others.
// Content that failed is not tried again before it changes.
func (w *Watcher) WatchSeparately(flag, path string, apply func(content []byte) error) error {
	return w.watch(&group{
		flag: flag, paths: []string{path}, separate: true,
		apply: func(contents [][]byte) error { return apply(contents[0]) },
	})
}

func (w *Watcher) watch(g *group) error {
	contents, err := g.read()
	if err == nil {
		err = g.use(contents)
	}
	if err != nil {
		return fmt.Errorf("--%s: %w", g.flag, err)
	}
	g.seen = digest(contents, nil)
	w.groups = append(w.groups, g)
	w.record(g.flag, func(s *Stats) { s.Hash = hash(contents) })
	return nil
}

func (w *Watcher) record(flag string, change func(*Stats)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stats := w.stats[flag]
	change(&stats)
	w.stats[flag] = stats
}

// Run reads the files until ctx ends. Without any, it returns at once.
func (w *Watcher) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	var together []*group
	for _, g := range w.groups {
		if g.separate {
			running.Go(func() { w.poll(ctx, g) })
		} else {
			together = append(together, g)
		}
	}
	if len(together) > 0 {
		w.poll(ctx, together...)
	}
}

// poll checks groups, one after the other, at each interval until ctx ends.
func (w *Watcher) poll(ctx context.Context, groups ...*group) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for _, g := range groups {
				w.check(g)
			}
		}
	}
}

// check reads a group and uses it if it has changed, or if it could not be used before.
// The same error is logged and counted once.
func (w *Watcher) check(g *group) {
	contents, err := g.read()
	now := digest(contents, err)
	changed := now != g.seen
	if !changed && (g.failure == "" || g.separate || err != nil) {
		return
	}
	g.seen = now
	if err == nil {
		err = g.use(contents)
	}
	before := g.failure
	g.failure = ""
	if err != nil {
		if g.failure = err.Error(); !changed && g.failure == before {
			return
		}
	}
	result := "success"
	if err != nil {
		result = "failure"
		w.record(g.flag, func(s *Stats) { s.Failed, s.LastFailure = s.Failed+1, time.Now() })
		w.log.Error("a changed file cannot be used: the server goes on with what it had", "flag", "--"+g.flag, "error", err)
	} else {
		w.record(g.flag, func(s *Stats) { s.Succeeded, s.LastSuccess, s.Hash = s.Succeeded+1, time.Now(), hash(contents) })
		w.log.Info("read a changed file", "flag", "--"+g.flag, "files", strings.Join(g.paths, ","))
	}
	w.reloads.WithLabelValues(g.flag, result).Inc()
	w.last.WithLabelValues(g.flag, result).SetToCurrentTime()
}

func (g *group) read() ([][]byte, error) {
	contents := make([][]byte, len(g.paths))
	for i, path := range g.paths {
		var err error
		if contents[i], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return contents, nil
}

// use applies contents; the error names the files.
func (g *group) use(contents [][]byte) error {
	if err := g.apply(contents); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(g.paths, ", "), err)
	}
	return nil
}

// hash is the SHA-256 of contents, as Kubernetes' metrics write it.
func hash(contents [][]byte) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(slices.Concat(contents...)))
}

// digest identifies contents, or the error of reading them.
func digest(contents [][]byte, err error) [sha256.Size]byte {
	sum := sha256.New()
	for _, content := range contents {
		fmt.Fprintf(sum, "%d:", len(content))
		sum.Write(content)
	}
	if err != nil {
		fmt.Fprintf(sum, "error: %v", err)
	}
	return [sha256.Size]byte(sum.Sum(nil))
}
