package main

import (
	"context"
	"errors"
	"sync"
)

// running knows which components of `levelwire up` run. They serve no ports, by which the server
// could find out, as it does of those in other processes.
type running struct {
	mu    sync.Mutex
	names map[string]bool
}

// componentNames are the names that component statuses have for parts.
var componentNames = map[string]string{partControllers: "controller-manager", partScheduler: "scheduler"}

// checks returns what tells the server how the components are that are not left out.
func (r *running) checks(parts *upParts) map[string]func(context.Context) error {
	checks := map[string]func(context.Context) error{}
	for part, name := range componentNames {
		if !parts.leavesOut(part) {
			checks[name] = func(context.Context) error { return r.check(part) }
		}
	}
	return checks
}

var errNotRunning = errors.New("it does not run")

func (r *running) check(part string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.names[part] {
		return errNotRunning
	}
	return nil
}

func (r *running) set(part string, runs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names = map[string]bool{}
	}
	r.names[part] = runs
}

// note returns run, which is noted for as long as it runs.
func (r *running) note(part string, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		r.set(part, true)
		defer r.set(part, false)
		return run(ctx)
	}
}
