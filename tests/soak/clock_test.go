package soak

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
	"github.com/levelwire/levelwire/storage/memory"

	"github.com/levelwire/levelwire/tests/workload"
)

// jumps are of the wall clock, while something lasts that goes by the monotonic one.
var jumps = map[string]time.Duration{"forward": 36 * time.Hour, "backward": -36 * time.Hour}

// longest bounds what takes two seconds, on a machine that has much else to do. A clock that jumps
// moves by hours.
const longest = workload.Timeout

// eachJump runs a subtest for each of jumps. What it calls makes the clock jump.
func eachJump(t *testing.T, test func(t *testing.T, jump func())) {
	t.Helper()
	if shiftWall == nil {
		t.Skip("wall clocks jump in a test that was built with the overlay of ./wallclock: make test-clock")
	}
	for name, by := range jumps {
		t.Run(name, func(t *testing.T) {
			before := time.Now()
			test(t, func() {
				shiftWall(by)
				// Without its monotonic reading, a time is what the wall clock says.
				if moved := time.Now().Round(0).Sub(before.Round(0)); (moved - by).Abs() > workload.Timeout {
					t.Fatalf("the wall clock has moved by %v", moved)
				}
			})
			shiftWall(0)
		})
	}
}

// TestClockAndLeases: a key with a time to live lives for that long, in either store.
func TestClockAndLeases(t *testing.T) {
	const ttl = 2 * time.Second
	for name, open := range map[string]func(t *testing.T) (storage.Store, error){
		"etcd": func(t *testing.T) (storage.Store, error) {
			return etcd.Embed(t.Context(), etcd.EmbedConfig{Dir: t.TempDir()})
		},
		"memory": func(*testing.T) (storage.Store, error) { return memory.Open(memory.Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			eachJump(t, func(t *testing.T, jump func()) {
				store, err := open(t)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := store.Close(); err != nil {
						t.Error(err)
					}
				}()
				begun := time.Now()
				if _, err := store.Create(t.Context(), "/before", nil, ttl); err != nil {
					t.Fatal(err)
				}
				jump()
				if _, err := store.Create(t.Context(), "/after", nil, ttl); err != nil {
					t.Fatal(err)
				}
				for _, key := range []string{"/before", "/after"} {
					workload.Await(t, func() string { return key + " does not expire" }, func() bool {
						_, err := store.Get(t.Context(), key, 0)
						if err != nil && !errors.Is(err, storage.ErrNotFound) {
							t.Fatal(err)
						}
						return err != nil
					})
					if lived := time.Since(begun); lived < ttl || lived > longest {
						t.Errorf("%s, with %v to live, is gone after %v", key, ttl, lived)
					}
				}
			})
		})
	}
}

// TestClockAndWatches: a watch lasts for as long as its client has asked for, and the
// history from which another one resumes is kept by its age.
func TestClockAndWatches(t *testing.T) {
	const lasts = 2 * time.Second
	eachJump(t, func(t *testing.T, jump func()) {
		store, err := memory.Open(memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		creds := newCredentials(t)
		m := &member{config: server.Config{
			ClientCAFile: creds.authorityFile, TLSCertFile: creds.servingFile, TLSKeyFile: creds.servingKeyFile,
			DataDir: t.TempDir(), SecurePort: server.AnyPort, Logger: slog.New(slog.DiscardHandler),
			OpenStore:          func(context.Context) (storage.Store, error) { return store, nil },
			CompactionInterval: 10 * time.Millisecond, CompactionRetention: time.Hour, CompactionRevisions: -1,
		}}
		m.start(t)
		defer m.stop(t)
		direct := workload.NewClient(t, creds.lasting("https://"+m.address), client.Options{})
		defer direct.CloseIdleConnections()
		objects := client.For[*corev1.ConfigMap](direct).Namespace("default")
		list, err := objects.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		oldest, err := store.Oldest(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		begun, seconds := time.Now(), int64(lasts.Seconds())
		watch, err := objects.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, TimeoutSeconds: &seconds})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Close()
		jump()
		if _, err := objects.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "after"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		var seen []string
		for event, err := range watch.Events() {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, string(event.Type))
		}
		if lasted := time.Since(begun); lasted < lasts || lasted > longest || strings.Join(seen, " ") != "ADDED" {
			t.Errorf("a watch for %v lasted %v and brought %v", lasts, lasted, seen)
		}
		// There were 200 intervals of compaction meanwhile.
		if now, err := store.Oldest(t.Context()); err != nil || now != oldest {
			t.Errorf("history began at %d, and now at %d, %v", oldest, now, err)
		}
	})
}
