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
)

// beginProfile begins a profile of our server's processor time, if profiles are
// wanted, and returns what ends and saves it.
func (b *bench) beginProfile(ctx context.Context, t *testedServer, name string) (end func() error) {
	if b.plan.profiles == "" || t.side != ours || t.access.URL == "" {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	path := filepath.Join(b.plan.profiles, strings.NewReplacer(" ", "-", ",", "").Replace(name)+".prof")
	go func() { done <- t.profile(ctx, path) }()
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

// profile saves a profile of the server's next seconds.
func (t *testedServer) profile(ctx context.Context, path string) error {
	client, err := t.access.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	url := fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", t.access.URL, profileFor/time.Second)
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
