package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/klog/v2"
)

// task is what one child process is to do; it is passed as JSON.
type task struct {
	Role     string // "server", "sync", "events", "machinery", "indexer", "save", "restart", "equal ConfigMaps", "equal pods", "idle"
	Library  string // ours or clientGo
	Protobuf bool
	Paged    bool
	Handlers int
	// MaxUnmergedEvents: our handlers get every event, as client-go's do.
	MaxUnmergedEvents bool
	// Compressed: our informer keeps its objects compressed.
	Compressed bool
	Count      int // of pods, events or informers
	Dir        string

	Kubeconfig, Canned, Control string // where the server is
	Profile                     string // a file for a processor profile of the measured part
}

const (
	ours     = "levelwire"
	clientGo = "client-go"
)

// result is what a child process measured, by name.
type result map[string]float64

func main() {
	klog.SetLogger(klog.Logger{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clientbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var p plan
	child := flag.String("task", "", "what this process is to do, as JSON; for child processes")
	flag.IntVar(&p.pods, "pods", 200_000, "pods to list")
	flag.IntVar(&p.events, "events", 100_000, "events to follow")
	flag.IntVar(&p.informers, "informers", 100, "idle informers")
	flag.IntVar(&p.repeat, "repeat", 3, "how often everything is measured")
	flag.StringVar(&p.only, "only", "", "measure only this: sync, compressed, restart, equal, events, machinery, indexer or idle")
	flag.StringVar(&p.report, "report", "", "the file whose results are replaced; empty: standard output")
	flag.StringVar(&p.profiles, "profiles", "", "a folder for processor profiles of the last repetition")
	flag.Parse()
	if *child == "" {
		return p.run(ctx)
	}
	var t task
	if err := json.Unmarshal([]byte(*child), &t); err != nil {
		return fmt.Errorf("task: %w", err)
	}
	if t.Role == "server" {
		return serve(ctx, t)
	}
	measure, ok := roles[t.Role]
	if !ok {
		return fmt.Errorf("there is no role %q", t.Role)
	}
	r, err := measure(ctx, t)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// roles are the measurements, each the whole work of one process.
var roles = map[string]func(context.Context, task) (result, error){
	"sync":      measureSync,
	"events":    measureEvents,
	"machinery": measureMachinery,
	"indexer":   measureIndexer,
	"save":      save,
	"restart":   measureRestart,
	"idle":      measureIdle,

	"equal ConfigMaps": measureEqualConfigMaps,
	"equal pods":       measureEqualPods,
}
