package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// profile records the server's processor time, and then what its goroutines wait for, if that
// is wanted. The work may be shorter: then both have what comes after it, too.
func (p *plan) profile(ctx context.Context, t *tested.Server, name string) (wait func() error) {
	if p.profiles == "" {
		return func() error { return nil }
	}
	var recording sync.WaitGroup
	var failed error
	recording.Go(func() {
		failed = errors.Join(
			t.Access.SaveProfile(ctx, "profile?seconds=5", filepath.Join(p.profiles, name+".prof")),
			t.Access.SaveProfile(ctx, "trace?seconds=2", filepath.Join(p.profiles, name+".trace")))
	})
	return func() error {
		recording.Wait()
		return failed
	}
}
