package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
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
	go func() { done <- saveProfile(ctx, t.Access, path) }()
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

// saveProfile saves a profile of the server's next seconds.
func saveProfile(ctx context.Context, server tested.Access, path string) error {
	client, err := server.HTTPClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	url := fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", server.URL, profileFor/time.Second)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("profile: %s", response.Status)
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
