package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
)

// TestRunning: a component runs from its beginning to its end, and one that is left out is not
// answered for.
func TestRunning(t *testing.T) {
	parts := upPartsOf(t, "--without", "scheduler")
	checks := parts.running.checks(parts)
	if names := slices.Collect(maps.Keys(checks)); !slices.Equal(names, []string{"controller-manager"}) {
		t.Fatalf("checks of %v", names)
	}
	check := func(want error) {
		t.Helper()
		if err := checks["controller-manager"](t.Context()); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	check(errNotRunning)
	run := parts.running.note(partControllers, func(context.Context) error {
		check(nil)
		return errStopped
	})
	if err := run(t.Context()); !errors.Is(err, errStopped) {
		t.Errorf("it ended with %v", err)
	}
	check(errNotRunning)
}
