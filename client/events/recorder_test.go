package events

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"

	"github.com/levelwire/levelwire/client"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newRecorder returns a recorder, not running, whose server accepts every event.
func newRecorder(t *testing.T) *Recorder {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return New(c, "tester", Options{Burst: -1, Logger: slog.New(slog.DiscardHandler)})
}

// Without a logger, what cannot be written goes to the program's default one.
func TestNilLoggerIsTheDefaultOne(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	r := New(c, "tester", Options{})
	r.Normal(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, "Lost", "no server reads it")
	r.writeNext(ctx)
	if !strings.Contains(log.String(), "Lost") {
		t.Errorf("logged: %s", log.String())
	}
}

func TestNamesAreUnique(t *testing.T) {
	r := &Recorder{}
	o := occurrence{about: subject{name: "p"}, at: time.Unix(1, 0)}
	if a, b := r.nameFor(o), r.nameFor(o); a == b {
		t.Errorf("two events at the same time are both %s", a)
	}
}

// Every object can have events, whatever it is called, and names that an Event may have
// stay as they are.
func TestNamesOfEvents(t *testing.T) {
	long := strings.Repeat("a", validation.DNS1123SubdomainMaxLength)
	for name, want := range map[string]string{
		"web-0":              "web-0",
		"widgets.example.io": "widgets.example.io",
		"system:thing":       "system-thing",
		"system:node:a.b":    "system-node-a.b",
		"Admin":              "admin",
		"2001:db8::1":        "2001-db8--1",
		"::":                 "event",
		":x":                 "x",
		"x:":                 "x",
		"a_b":                "a-b",
		"view*":              "view",
		"a..b":               "a.b",
		"a.-.b":              "a.b",
		".a-.-b.":            "a.b",
		"größe":              "gr--e",
		"\xff\xfe":           "event",
		"a b/c%2F":           "a-b-c-2f",
		"":                   "event",
		long:                 "",
		"A" + long:           "",
		strings.Repeat("a", 230) + "--" + strings.Repeat("b", 20):   "",
		strings.Repeat("a.", 200):                                   "",
		strings.Repeat("ß", 200):                                    "event",
		strings.Repeat("a", 234) + strings.Repeat("ß", 20):          "",
		strings.Repeat("a:", 115) + ".." + strings.Repeat("-.", 30): "",
	} {
		r := &Recorder{}
		o := occurrence{about: subject{name: name}, at: time.Unix(0, 0x178959f726d80ec)}
		got := r.nameFor(o)
		if faults := validation.IsDNS1123Subdomain(got); len(faults) > 0 {
			t.Errorf("%q: %q: %v", name, got, faults)
		}
		if want != "" && got != want+".178959f726d80ec" {
			t.Errorf("%q: got %s", name, got)
		}
		if again := r.nameFor(o); again == got {
			t.Errorf("%q: two events are both %s", name, again)
		}
	}
}

func FuzzNamesOfEvents(f *testing.F) {
	for _, name := range []string{"web-0", "system:thing", "2001:db8::1", "..", strings.Repeat("a", 236) + ".", "\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r := &Recorder{}
		if got := r.nameFor(occurrence{about: subject{name: name}, at: time.Now()}); len(validation.IsDNS1123Subdomain(got)) > 0 {
			t.Errorf("%q: %q", name, got)
		}
	})
}

// A recorder that cannot write blocks no caller, and its memory is bounded.
func TestReportingNeverBlocks(t *testing.T) {
	r := newRecorder(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	for i := range queueLength + 5 {
		r.Normal(pod, "Much", "%d", i)
	}
	if got := r.Stats(); got != (Stats{Queued: queueLength, QueueFull: 5}) || got.Dropped() != 5 {
		t.Errorf("%+v", got)
	}
}

// An object whose kind is unknown is reported to the log, not to the server.
func TestEventsAboutUnknownKindsAreCounted(t *testing.T) {
	r := newRecorder(t)
	r.Normal(&metav1.PartialObjectMetadata{}, "Seen", "hello")
	r.Warning(nil, "Seen", "hello")
	if got := r.Stats(); got != (Stats{UnknownKind: 2}) || got.Dropped() != 2 {
		t.Errorf("%+v", got)
	}
}

// What is tracked about events is bounded, whatever the number of objects: the event
// that was written longest ago starts a new Event object.
func TestTrackedEventsAreBounded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	r := newRecorder(t)
	r.filter.burst = 1
	report := func(name string) {
		r.Normal(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, "R", "m")
		r.writeNext(ctx)
	}
	for i := range trackedMost {
		key := eventKey{similar: similar{about: subject{name: fmt.Sprint(i)}}}
		r.seen.Add(key, written{})
		r.combiner.groups.Add(key.similar, &group{})
		r.filter.buckets.Add(key.similar.about, &bucket{})
	}
	report("p")
	for name, tracked := range map[string]*lru.Cache{"events": r.seen, "groups": r.combiner.groups, "objects": r.filter.buckets} {
		if tracked.Len() != trackedMost {
			t.Errorf("tracks %d %s", tracked.Len(), name)
		}
	}
	if got := r.Stats().Written; got != 1 {
		t.Errorf("%d written", got)
	}
}

// Events that nothing writes are reported to the log, once.
func TestRecordersThatDoNotRunAreLogged(t *testing.T) {
	r := newRecorder(t)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r.log = slog.New(slog.NewTextHandler(&log, nil))
		for range queueLength + 2 {
			r.Normal(&corev1.Pod{}, "Seen", "hello")
		}
		time.Sleep(2 * runWarning)
		synctest.Wait()
		if said := log.String(); strings.Count(said, "queue of the events.Recorder is full") != 1 || strings.Count(said, "call its Run") != 1 {
			t.Errorf("logged %s", said)
		}
	})
}
