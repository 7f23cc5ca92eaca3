package tracing

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/storage"
)

// newTracer returns a Tracer that traces a share of all requests, and what it has made.
func newTracer(share float64) (*Tracer, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	return New(sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(share))), sdktrace.WithSpanProcessor(recorder),
	)), recorder
}

const (
	sampledTrace   = "4bf92f3577b34da6a3ce929d0e0e4736"
	sampledParent  = "00-" + sampledTrace + "-00f067aa0ba902b7-01"
	unsampledFlags = "00"
)

// TestWhoDecides: a traceparent decides about the requests of trusted users only; those of
// others are linked to what they name.
func TestWhoDecides(t *testing.T) {
	for _, test := range []struct {
		name, parent, group string
		share               float64
		recorded, joined    bool
		links               int
	}{
		{"trusted, sampled", sampledParent, "system:masters", 0, true, true, 0},
		{"monitoring, sampled", sampledParent, "system:monitoring", 0, true, true, 0},
		{"trusted, not sampled", strings.TrimSuffix(sampledParent, "01") + unsampledFlags, "system:masters", 1, false, true, 0},
		{"trusted, none", "", "system:masters", 1, true, false, 0},
		{"trusted, malformed", "00-zz", "system:masters", 0, false, false, 0},
		{"other, sampled", sampledParent, "developers", 0, false, false, 0},
		{"other, sampled, all are traced", sampledParent, "developers", 1, true, false, 1},
		{"other, none", "", "developers", 0, false, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			tracer, recorder := newTracer(test.share)
			r := httptest.NewRequest("GET", "/api/v1/pods", nil)
			r.Header.Set("Traceparent", test.parent)
			_, span := tracer.Begin(r, Request{Groups: []string{test.group}, Began: time.Now()})
			if span.IsRecording() != test.recorded {
				t.Errorf("recorded: %v, want %v", span.IsRecording(), test.recorded)
			}
			if joined := span.SpanContext().TraceID().String() == sampledTrace; joined != test.joined {
				t.Errorf("part of the named trace: %v, want %v", joined, test.joined)
			}
			span.End()
			ended := recorder.Ended()
			if test.recorded != (len(ended) == 2) { // and its authentication
				t.Fatalf("%d spans", len(ended))
			}
			if test.recorded && len(ended[1].Links()) != test.links {
				t.Errorf("links: %v", ended[1].Links())
			}
		})
	}
}

// followed begins a followed write of a key by a traced request.
func followed(t *testing.T, tracer *Tracer, key string) *write {
	t.Helper()
	r := httptest.NewRequest("PUT", "/", nil)
	r.Header.Set("Traceparent", sampledParent)
	r, span := tracer.Begin(r, Request{Groups: trusted, Began: time.Now()})
	t.Cleanup(func() { span.End() })
	w := tracer.Events().begin(r.Context(), key)
	if w == nil {
		t.Fatal("the write is not followed")
	}
	return w
}

// names returns the names of the spans of events.
func names(recorder *tracetest.SpanRecorder) (names []string) {
	for _, span := range recorder.Ended() {
		if name := span.Name(); name != "authentication" {
			names = append(names, name)
		}
		if got := span.SpanContext().TraceID().String(); got != sampledTrace {
			panic("a span of another trace: " + got)
		}
	}
	return names
}

// TestOrderOfTheStepsDoesNotMatter: the cache and watches may have an event before the store's
// answer has reached the request, and another write of the key may come between.
func TestOrderOfTheStepsDoesNotMatter(t *testing.T) {
	now := time.Now()
	steps := map[string]func(e *Events, w *write){
		"committed": func(e *Events, w *write) { e.committed(w, 7, nil) },
		"applied": func(e *Events, _ *write) {
			e.Applied("/pods/", "a", 6)
			e.Applied("/pods/", "a", 7)
			e.Applied("/pods/", "b", 7)
		},
		"sent": func(e *Events, _ *write) {
			for _, revision := range []storage.Revision{6, 7} {
				if !e.Follows("/pods/", "a", 7) || e.Follows("/pods/", "b", 7) {
					t.Error("the event is not followed, or another is")
				}
				e.Sent([]Send{{Key: "/pods/a", Revision: revision, Watch: uint64(revision), Read: now, Encoded: now, Written: now}})
			}
		},
	}
	for _, order := range [][]string{
		{"committed", "applied", "sent"}, {"applied", "committed", "sent"}, {"applied", "sent", "committed"},
	} {
		tracer, recorder := newTracer(0)
		w := followed(t, tracer, "/pods/a")
		for _, step := range order {
			steps[step](tracer.Events(), w)
		}
		if got := names(recorder); !slices.Equal(got, []string{"watch cache", "watch"}) {
			t.Errorf("%v: spans %v", order, got)
		}
		tracer.Events().close()
	}
}

// TestFollowedWritesAreBounded: a write is followed for a time, only if it succeeds, and with a
// bounded number of watches; a bounded number of writes is followed.
func TestFollowedWritesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer, recorder := newTracer(0)
		e := tracer.Events()
		e.committed(followed(t, tracer, "/pods/refused"), 0, errors.New("refused"))
		if e.Following() {
			t.Error("a write that the store has refused is followed")
		}
		w := followed(t, tracer, "/pods/a")
		e.Applied("/pods/", "a", 7)
		e.committed(w, 7, nil)
		for range 2 * maxWatches {
			e.Sent([]Send{{Key: "/pods/a", Revision: 7}})
		}
		if got := len(names(recorder)); got != 1+maxWatches {
			t.Errorf("%d spans, want %d", got, 1+maxWatches)
		}
		for range 2 * maxApplied {
			e.Applied("/pods/", "a", 8)
		}
		if len(w.applied) > maxApplied {
			t.Errorf("%d changes are remembered", len(w.applied))
		}
		time.Sleep(followFor + time.Second)
		synctest.Wait()
		if e.Following() || len(e.byKey) > 0 {
			t.Error("the write is still followed")
		}
		ctx := trace.ContextWithSpanContext(context.Background(), w.parent)
		for range maxFollowed {
			e.begin(ctx, "/pods/b")
		}
		if e.begin(ctx, "/pods/b") != nil {
			t.Error("too many writes are followed")
		}
		e.close()
		if e.Following() || e.begin(ctx, "/pods/b") != nil {
			t.Error("writes are followed after the end")
		}
	})
}

// TestNothingIsTraced: what is nil follows nothing, and a request that is not traced costs no
// allocation in what is called for each.
func TestNothingIsTraced(t *testing.T) {
	var none *Tracer
	if none.Events().Following() || none.Close(t.Context()) != nil || none.Store(nil) != nil {
		t.Error("a nil Tracer does something")
	}
	tracer, _ := newTracer(0)
	ctx := t.Context()
	if allocations := testing.AllocsPerRun(100, func() {
		_, span := Start(ctx, "x")
		End(span, nil)
		tracer.Events().Applied("/pods/", "a", 1)
	}); allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// TestReadConfig: a file says one line that helps if it is of no use.
func TestReadConfig(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
	for content, problem := range map[string]string{
		head: "",
		head + "endpoint: localhost:4317\nsamplingRatePerMillion: 100\n": "",
		strings.Replace(head, "/v1", "/v1beta1", 1):                      "",
		strings.Replace(head, "/v1", "/v2", 1):                           "apiVersion apiserver.config.k8s.io/v1 or",
		head + "samplingRatePerMillion: -1\n":                            "sampling rate must be positive",
		head + "samplingRatePerMillion: 1000001\n":                       "less than or equal to one million",
		head + "endpoint: https://collector\n":                           "unsupported scheme",
		head + "samplingRate: 1\n":                                       `unknown field "samplingRate"`,
		"":                                                               "the file is empty",
	} {
		file := filepath.Join(t.TempDir(), "tracing.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadConfig(file)
		if (err == nil) != (problem == "") || err != nil && (!strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %v, want %q", content, err, problem)
		}
	}
}

// TestLongTextIsCut: clients do not decide how large the spans are.
func TestLongTextIsCut(t *testing.T) {
	long := "/" + strings.Repeat("é", 5000)
	tracer, recorder := newTracer(1)
	r := httptest.NewRequest("PUT", "/", nil)
	r.URL.Path = long
	r.Header.Set("User-Agent", long)
	r, span := tracer.Begin(r, Request{Groups: trusted, Began: time.Now()})
	w := tracer.Events().begin(r.Context(), long)
	tracer.Events().committed(w, 7, nil)
	tracer.Events().Applied("", long, 7)
	tracer.Events().Sent([]Send{{Key: long, Revision: 7, Agent: long}})
	span.End()
	cut := 0
	for _, span := range recorder.Ended() {
		for _, a := range span.Attributes() {
			switch text := a.Value.AsString(); {
			case len(text) > maxText || !utf8.ValidString(text):
				t.Errorf("%s of %s has %d bytes", a.Key, span.Name(), len(text))
			case strings.HasPrefix(text, "/éé"):
				cut++
			}
		}
	}
	if cut != 4 {
		t.Errorf("%d attributes were cut, want those of the path, the key and the client twice", cut)
	}
}
