package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

func TestOpenRefusesBadConfigurations(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage.pem")
	write(t, garbage, "no certificate")
	secure := []string{"https://127.0.0.1:1"}
	for _, test := range []struct {
		name   string
		config etcd.Config
		want   string
	}{
		{"no endpoint", etcd.Config{}, "no etcd endpoint"},
		{"no scheme", etcd.Config{Endpoints: []string{"127.0.0.1:2379"}}, "127.0.0.1:2379"},
		{"other scheme", etcd.Config{Endpoints: []string{"ftp://a:1"}}, "ftp://a:1"},
		{"CA missing", etcd.Config{Endpoints: secure, CAFile: "/nonexistent/ca.pem"}, "/nonexistent/ca.pem"},
		{"CA garbage", etcd.Config{Endpoints: secure, CAFile: garbage}, garbage},
		{"certificate without key", etcd.Config{Endpoints: secure, CertFile: garbage}, "go together"},
		{"certificate garbage", etcd.Config{Endpoints: secure, CertFile: garbage, KeyFile: garbage}, garbage},
	} {
		t.Run(test.name, func(t *testing.T) {
			store, err := etcd.Open(t.Context(), test.config)
			if err == nil {
				store.Close()
				t.Fatal("Open succeeded")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want it to name %q", err, test.want)
			}
		})
	}
}

// deadEndpoint returns a URL where nothing listens before the test does.
func deadEndpoint(t *testing.T) string {
	t.Helper()
	port, release, err := faultnet.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return fmt.Sprint("http://127.0.0.1:", port)
}

// TestOpenWaitsVisibly starts the cluster only after Open has reported a failed
// attempt, and expects Open to succeed.
func TestOpenWaitsVisibly(t *testing.T) {
	endpoint := deadEndpoint(t)
	attempts := make(chan etcd.Attempt, 100)
	opened := make(chan error, 1)
	var store *etcd.Store
	go func() {
		var err error
		store, err = etcd.Open(t.Context(), etcd.Config{
			Endpoints:   []string{endpoint},
			DialTimeout: 200 * time.Millisecond,
			Waiting:     func(a etcd.Attempt) { attempts <- a },
		})
		opened <- err
	}()
	if a := <-attempts; a.Number != 1 || a.Err == nil {
		t.Errorf("first attempt: %+v", a)
	}
	start(t, etcd.EmbedConfig{ListenClientURL: endpoint})
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Create(t.Context(), "/a", nil, 0); err != nil {
		t.Fatal(err)
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	endpoint := deadEndpoint(t)
	ctx, cancel := context.WithCancel(t.Context())
	store, err := etcd.Open(ctx, etcd.Config{
		Endpoints:   []string{endpoint},
		DialTimeout: 50 * time.Millisecond,
		Waiting:     func(etcd.Attempt) { cancel() },
	})
	if err == nil {
		store.Close()
		t.Fatal("Open succeeded without a server")
	}
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), endpoint) {
		t.Errorf("got %q, want %v and the endpoint %s", err, context.Canceled, endpoint)
	}
}

// TestStreamsOutliveTheServer stops the external etcd under an open stream and
// an idle client, and starts it again on the same data.
func TestStreamsOutliveTheServer(t *testing.T) {
	endpoint, dir := deadEndpoint(t), t.TempDir()
	server := start(t, etcd.EmbedConfig{Dir: dir, ListenClientURL: endpoint})
	client := connect(t, server)
	first, err := client.Create(t.Context(), "/a", []byte("1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := client.Watch(t.Context(), "/", 0)
	if err != nil {
		t.Fatal(err)
	}
	if batch, err := stream.Next(); err != nil || batch.Revision != first {
		t.Fatalf("%+v, %v; want the event of %d", batch, err, first)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	down, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) //passes: there is no server
	defer cancel()
	if _, err := client.Current(down); !errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Current without a server: %v", err)
	}

	server = start(t, etcd.EmbedConfig{Dir: dir, ListenClientURL: endpoint})
	var want []storage.Revision
	for _, key := range []string{"/b", "/c"} {
		rev, err := server.Create(t.Context(), key, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, rev)
	}
	var got []storage.Revision
	for len(got) < len(want) {
		batch, err := stream.Next()
		if err != nil {
			t.Fatalf("the stream did not outlive the server: %v", err)
		}
		for _, e := range batch.Events {
			got = append(got, e.Revision)
		}
	}
	if got[0] != want[0] || got[1] != want[1] || len(got) != 2 {
		t.Errorf("after the restart: events of %v, want %v", got, want)
	}
}
