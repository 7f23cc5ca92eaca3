package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/internal/childprocess"
)

// plan is what the parent process has measured.
type plan struct {
	pods, events, informers, repeat int
	only, report, profiles          string
}

// comparison is one measurement of both libraries.
type comparison struct {
	group, name   string
	first, second task // the second is what the first is compared with
	got           [2][]result
}

// compare adds to what is to be measured: t with each library; change makes
// ours a variation.
func (p *plan) compare(all []*comparison, group, name string, t task, change func(ours *task)) []*comparison {
	if p.only != "" && p.only != group {
		return all
	}
	c := &comparison{group: group, name: name, first: t, second: t}
	c.first.Library, c.second.Library = ours, clientGo
	if change != nil {
		change(&c.first)
	}
	return append(all, c)
}

// comparisons is everything there is to measure.
func (p *plan) comparisons(files string) (all []*comparison) {
	every := func(t *task) { t.MaxUnmergedEvents = true }
	for _, protobuf := range []bool{false, true} {
		encoding := map[bool]string{false: "JSON", true: "protobuf"}[protobuf]
		for _, paged := range []bool{false, true} {
			list := map[bool]string{false: "streaming list", true: "list in pages"}[paged]
			all = p.compare(all, "sync", encoding+", "+list, task{Role: "sync", Protobuf: protobuf, Paged: paged, Count: p.pods}, nil)
		}
		all = p.compare(all, "compressed", encoding+", streaming list", task{Role: "sync", Protobuf: protobuf, Count: p.pods},
			func(ours *task) { ours.Compressed = true })
		for _, handlers := range []int{1, 10} {
			all = p.compare(all, "events", fmt.Sprintf("%s, handlers: %d", encoding, handlers),
				task{Role: "events", Protobuf: protobuf, Handlers: handlers, Count: p.events}, every)
		}
		all = p.compare(all, "restart", encoding, task{Role: "restart", Protobuf: protobuf, Count: p.pods, Dir: files}, nil)
	}
	all = p.compare(all, "equal", "kube-root-ca.crt of every namespace", task{Role: "equal ConfigMaps", Count: p.pods}, nil)
	all = p.compare(all, "equal", "pods of a job that wait to be scheduled", task{Role: "equal pods", Count: p.pods}, nil)
	for _, handlers := range []int{1, 10} {
		all = p.compare(all, "machinery", fmt.Sprintf("handlers: %d", handlers), task{Role: "machinery", Handlers: handlers, Count: p.events}, every)
	}
	all = p.compare(all, "indexer", "two indexes", task{Role: "indexer", Count: p.pods}, nil)
	for _, handlers := range []int{1, 10} {
		all = p.compare(all, "idle", fmt.Sprintf("handlers: %d", handlers), task{Role: "idle", Handlers: handlers, Count: p.informers}, nil)
	}
	return all
}

// run measures everything and reports.
func (p *plan) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "clientbench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system clears its temporary files
	files := filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o700); err != nil {
		return err
	}
	all := p.comparisons(files)
	server, stop, err := p.startServer(ctx, filepath.Join(dir, "server"))
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	defer stop()
	for n := range p.repeat {
		for _, c := range all {
			if err := c.measure(ctx, p, server, n == p.repeat-1); err != nil {
				return fmt.Errorf("%s, %s: %w", c.group, c.name, err)
			}
		}
	}
	return p.write(ctx, all)
}

// measure runs both libraries once, the first and the second in turn.
func (c *comparison) measure(ctx context.Context, p *plan, server task, last bool) error {
	for n, t := range []task{c.first, c.second} {
		t.Kubeconfig, t.Canned, t.Control = server.Kubeconfig, server.Canned, server.Control
		if p.profiles != "" && last {
			name := strings.NewReplacer(" ", "-", ",", "", ":", "").Replace(c.group + " " + c.name + " " + t.Library)
			t.Profile = filepath.Join(p.profiles, name+".prof")
		}
		if t.Role == "restart" {
			if err := prepareRestart(ctx, t); err != nil {
				return err
			}
		}
		r, err := t.child(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Library, err)
		}
		fmt.Fprintf(os.Stderr, "%s, %s, %s: %v\n", c.group, c.name, t.Library, r)
		c.got[n] = append(c.got[n], r)
	}
	return nil
}

// changedMeanwhile is how many pods change while a client is down.
const changedMeanwhile = 100

// prepareRestart leaves a file behind, and then changes some pods.
func prepareRestart(ctx context.Context, t task) error {
	if t.Library == clientGo {
		return nil
	}
	t.Role, t.Profile = "save", ""
	if _, err := t.child(ctx); err != nil {
		return fmt.Errorf("saving: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/?n=%d", t.Control, changedMeanwhile), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("changing pods: %s", response.Status)
	}
	return nil
}

// command is this program as a child process.
func (t task) command(ctx context.Context) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-task", string(encoded))
	cmd.Stderr = os.Stderr
	cmd.Env = os.Environ()
	if t.Paged {
		cmd.Env = append(cmd.Env, "KUBE_FEATURE_WatchListClient=false")
	}
	return cmd, nil
}

// child runs a measurement.
func (t task) child(ctx context.Context) (result, error) {
	cmd, err := t.command(ctx)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := childprocess.Run(cmd); err != nil {
		return nil, err
	}
	var r result
	err = json.Unmarshal(out.Bytes(), &r)
	return r, err
}

// startServer starts the server's process and returns where it is.
func (p *plan) startServer(ctx context.Context, dir string) (where task, stop func(), err error) {
	cmd, err := task{Role: "server", Count: p.pods, Dir: dir}.command(ctx)
	if err != nil {
		return where, nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return where, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return where, nil, err
	}
	if err := childprocess.Start(cmd); err != nil {
		return where, nil, err
	}
	stop = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		stop()
		return where, nil, err
	}
	if err := json.Unmarshal(line, &where); err != nil {
		stop()
		return where, nil, fmt.Errorf("it said %q: %w", line, err)
	}
	time.Sleep(time.Second) // its garbage collector has much to do
	return where, stop, nil
}

// median of one quantity over all repetitions.
func median(results []result, name string) float64 {
	var values []float64
	for _, r := range results {
		values = append(values, r[name])
	}
	return measure.Median(values)
}
