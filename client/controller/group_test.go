package controller

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/leader"
)

// unreachable is a transport without a server.
type unreachable struct{}

// RoundTrip implements http.RoundTripper.
func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// SyncTimeout bounds the wait before an election, too.
func TestSyncTimeoutBoundsTheWaitBeforeAnElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		quiet := slog.New(slog.DiscardHandler)
		c, err := client.New(&rest.Config{Host: "http://server"}, client.Options{Logger: quiet,
			WrapTransport: func(http.RoundTripper) http.RoundTripper { return unreachable{} }})
		if err != nil {
			t.Fatal(err)
		}
		elector, err := leader.New(c, leader.Options{Namespace: "default", Name: "l", Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		factory := informer.NewFactory(c, informer.Options{Logger: quiet})
		widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		impatient := made(t, nothing, Options{Name: "impatient", SyncTimeout: time.Minute})
		For(impatient, informer.Dynamic(factory, widgets, informer.ListOptions{}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		started := time.Now()
		opts := RunOptions{Factory: factory, Leader: elector, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		err = Run(ctx, opts, made(t, nothing, Options{Name: "patient", SyncTimeout: 2 * time.Minute}), made(t, nothing, Options{Name: "unbounded"}), impatient)
		if err == nil || time.Since(started) != time.Minute {
			t.Fatalf("after %v: %v", time.Since(started), err)
		}
		for _, part := range []string{"widgets", "connection refused", "SyncTimeout of 1m0s"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the error does not say %q: %v", part, err)
			}
		}
		if !strings.Contains(log.String(), "waiting for informers") || !strings.Contains(log.String(), "widgets") {
			t.Errorf("logged: %s", log.String())
		}
	})
}

// A program may have informers only.
func TestRunWithoutRunnablesBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		started := time.Now()
		if err := Run(ctx, RunOptions{}); err != nil || time.Since(started) != time.Minute {
			t.Errorf("after %v: %v", time.Since(started), err)
		}
	})
}
