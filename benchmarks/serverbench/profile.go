package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// beginProfile begins a profile of our server's processor time, if profiles are
// wanted, and returns what ends and saves it.
func (b *bench) beginProfile(ctx context.Context, t *tested.Server, name string) (end func() error) {
	if b.plan.profiles == "" || t.Side != tested.Ours || t.Access.URL == "" {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	path := filepath.Join(b.plan.profiles, strings.NewReplacer(" ", "-", ",", "").Replace(name)+".prof")
	go func() {
		done <- t.Access.SaveProfile(ctx, fmt.Sprintf("profile?seconds=%d", profileFor/time.Second), path)
	}()
	return func() error {
		select {
		case err := <-done:
			return err
		case <-time.After(2 * profileFor): // the row may have been shorter than its profile
			cancel()
			return <-done
		}
	}
}

// profileFor is how long a profile is: the row may be shorter, and then the
// server has nothing to do for the rest.
const profileFor = 5 * time.Second
