package herd

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/benchmarks/workload"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// stub is a server of pods that answers as the test says.
type stub struct {
	t    *testing.T
	mu   sync.Mutex
	pods []*corev1.Pod
	now  int
	// refusals are answers to watches from a version, before others are open.
	refusals []func(http.ResponseWriter)
	packed   bool // streaming lists are compressed
	noStream bool
	asked    []string
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.mu.Lock()
	var frames []byte
	kind := "resume"
	switch {
	case query.Get("sendInitialEvents") != "":
		kind = "stream"
	case query.Get("watch") == "":
		kind = "list"
	}
	s.asked = append(s.asked, kind+" "+query.Get("resourceVersion"))
	node := strings.TrimPrefix(query.Get("fieldSelector"), "spec.nodeName=")
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(s.now)}}
	for _, p := range s.pods {
		if node == "" || p.Spec.NodeName == node {
			frames = append(frames, event(s.t, "ADDED", envelope(s.t, "Pod", p))...)
			list.Items = append(list.Items, *p)
		}
	}
	end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(s.now), Annotations: map[string]string{initialEnd: "true"}}}
	frames = append(frames, event(s.t, "BOOKMARK", envelope(s.t, "Pod", end))...)
	var refuse func(http.ResponseWriter)
	if kind == "resume" && len(s.refusals) > 0 {
		refuse, s.refusals = s.refusals[0], s.refusals[1:]
	}
	packed, noStream := s.packed, s.noStream
	s.mu.Unlock()
	switch {
	case refuse != nil:
		refuse(w)
		return
	case kind == "list":
		_, _ = w.Write(envelope(s.t, "PodList", list))
		return
	case kind == "stream" && noStream:
		http.Error(w, "not now", http.StatusInternalServerError)
		return
	case kind == "stream" && packed:
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(frames)
		_ = z.Flush() // what a reader has before the next member begins
		_ = z.Close()
	case kind == "stream":
		_, _ = w.Write(frames)
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// expired is the end of a watch whose version is gone, as a status or within the
// stream.
func (s *stub) expired(within bool) func(http.ResponseWriter) {
	status := envelope(s.t, "Status", &metav1.Status{Code: 410})
	return func(w http.ResponseWriter) {
		if !within {
			w.WriteHeader(http.StatusGone)
			return
		}
		_, _ = w.Write(event(s.t, "ERROR", status))
	}
}

// start gathers a herd of two on nodes and one that watches all pods. Waits take
// no time.
func (s *stub) start() *Herd {
	s.now = 10
	for i := range 6 {
		s.pods = append(s.pods, pod(i, 3+i))
	}
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	server.StartTLS()
	s.t.Cleanup(server.Close)
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.RootCAs = x509.NewCertPool()
	config.RootCAs.AddCert(server.Certificate())
	h, err := gather(s.t.Context(), &Herd{
		options: Options{Address: server.Listener.Addr().String(), TLS: config, Nodes: []string{workload.Node(1), workload.Node(2)}, Everything: 1},
		pause:   func(ctx context.Context, _ time.Duration) error { return pause(ctx, time.Millisecond) },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(h.Close)
	return h
}

// await waits until all informers hold what they should.
func await(t *testing.T, h *Herd) Report {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; {
		r := h.Report()
		if r.Converged == r.Informers {
			return r
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d have converged: %+v", r.Converged, r.Informers, r)
		}
		if err := pause(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHerd: informers that were cut off resume where they can, and list where
// they cannot, and are not taken for converged before they have.
func TestHerd(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(s *stub)
		want    Counts
	}{
		{"resume", func(*stub) {}, Counts{Resumes: 3}},
		{"expired within streams", func(s *stub) {
			s.refusals = []func(http.ResponseWriter){s.expired(true), s.expired(true), s.expired(true)}
			s.pods[1], s.now = pod(1, 11), 11
		}, Counts{Streams: 3, Listed: 3, Expired: 3}},
		{"expired, and lists compressed", func(s *stub) {
			s.packed = true
			s.refusals = []func(http.ResponseWriter){s.expired(false), s.expired(false), s.expired(false)}
			s.pods, s.now = s.pods[:5], 11
		}, Counts{Streams: 3, Listed: 3, Expired: 3}},
		{"no streaming lists", func(s *stub) {
			s.noStream = true
			s.refusals = []func(http.ResponseWriter){s.expired(false), s.expired(true), s.expired(false)}
		}, Counts{Streams: 3, Lists: 3, Listed: 3, Expired: 3, Resumes: 3}},
		{"busy", func(s *stub) {
			busy := func(w http.ResponseWriter) {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
			}
			s.refusals = []func(http.ResponseWriter){busy, busy}
		}, Counts{Resumes: 3, Busy: 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &stub{t: t}
			h := s.start()
			await(t, h)
			for _, i := range h.informers {
				i.mu.Lock()
				i.shown.begun = i.shown.begun.Add(-time.Minute) // a watch that ended at once would be another matter
				i.mu.Unlock()
			}
			h.Cut()
			if r := h.Report(); r.Converged != 0 {
				t.Errorf("%d have converged that are cut off", r.Converged)
			}
			s.mu.Lock()
			test.prepare(s)
			streams := s.noStream
			s.noStream = false
			s.mu.Unlock()
			if err := h.Expect(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.mu.Lock()
			s.noStream, s.asked = streams, nil
			s.mu.Unlock()
			h.Open()
			got := await(t, h)
			got.Bytes, got.Errors = 0, nil
			if fmt.Sprint(got.Counts) != fmt.Sprint(test.want) {
				t.Errorf("%+v, want %+v", got.Counts, test.want)
			}
			if got.Everything.Objects != len(s.pods) || len(got.After) != 3 {
				t.Errorf("%+v with %d pods", got, len(s.pods))
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, a := range s.asked {
				if a != "resume 10" && a != "stream 10" && a != "list 10" && !strings.HasPrefix(a, "resume 1") {
					t.Errorf("an informer asked for %q", a)
				}
			}
		})
	}
}

// TestErrors: errors that differ in addresses only are one.
func TestErrors(t *testing.T) {
	var c Counts
	for port := range 9 {
		c.error(fmt.Errorf("TLS with 127.0.0.1:99%d: %w\nmore", port, context.DeadlineExceeded))
		c.error(fmt.Errorf("read tcp 127.0.0.1:%d->127.0.0.1:443: reset", port))
	}
	if len(c.Errors) != 2 || c.Errors["no connection within 10 s"] != 9 || c.Errors["read tcp the server: reset"] != 9 {
		t.Errorf("%v", c.Errors)
	}
}

func TestAt(t *testing.T) {
	r := Report{Informers: 4, After: []time.Duration{1, 2, 3}}
	for percent, want := range map[int]time.Duration{25: 1, 50: 2, 51: 3, 75: 3} {
		if got, ok := r.At(percent); !ok || got != want {
			t.Errorf("%d %%: %d, %t", percent, got, ok)
		}
	}
	if at, ok := r.At(100); ok {
		t.Errorf("one is missing, but all were there at %v", at)
	}
}
