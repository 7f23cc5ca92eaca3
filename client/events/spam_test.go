package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
)

// eventServer keeps the Events that a Recorder writes, in memory and without
// connections, so that it works in a bubble of testing/synctest.
type eventServer struct {
	refuse bool
	events map[string]*corev1.Event // touched by one request at a time: a Recorder sends them one after another
}

func (s *eventServer) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(code int, body any) (*http.Response, error) {
		encoded, err := json.Marshal(body)
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(encoded)), Request: r}, err
	}
	if s.refuse {
		return answer(http.StatusForbidden, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden})
	}
	if r.Method == http.MethodPost {
		event := &corev1.Event{}
		if err := json.NewDecoder(r.Body).Decode(event); err != nil {
			return nil, err
		}
		s.events[event.Name] = event
		return answer(http.StatusCreated, event)
	}
	event, ok := s.events[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
	if !ok {
		return answer(http.StatusNotFound, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
	}
	if err := json.NewDecoder(r.Body).Decode(event); err != nil { // a merge patch of scalars
		return nil, err
	}
	return answer(http.StatusOK, event)
}

// summary has a line for each Event, sorted: message and count.
func (s *eventServer) summary() []string {
	lines := []string{}
	for _, event := range s.events {
		lines = append(lines, fmt.Sprintf("%s %s x%d", event.InvolvedObject.Name, event.Message, event.Count))
	}
	slices.Sort(lines)
	return lines
}

// inBubble runs a Recorder in a bubble until f returns.
func inBubble(t *testing.T, opts Options, f func(t *testing.T, r *Recorder, s *eventServer)) {
	synctest.Test(t, func(t *testing.T) {
		s := &eventServer{events: map[string]*corev1.Event{}}
		c, err := client.New(&rest.Config{Host: "http://server", WrapTransport: func(http.RoundTripper) http.RoundTripper { return s }}, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if opts.Logger == nil {
			opts.Logger = slog.New(slog.DiscardHandler)
		}
		r := New(c, "tester", opts)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = r.Run(ctx) }()
		f(t, r, s)
		cancel()
		synctest.Wait()
	})
}

func podNamed(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// An object may have 25 events at once, and then one in 5 minutes, of each type. The
// first that is dropped is logged, with the object; other objects have their own.
func TestObjectsWithTooManyEventsAreThrottled(t *testing.T) {
	var log bytes.Buffer
	opts := Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	inBubble(t, opts, func(t *testing.T, r *Recorder, s *eventServer) {
		for range 30 {
			r.Warning(podNamed("bad"), "Failed", "again")
		}
		r.Normal(podNamed("bad"), "Started", "hello")
		r.Warning(podNamed("other"), "Failed", "again")
		synctest.Wait()
		want := []string{"bad again x25", "bad hello x1", "other again x1"}
		if got := s.summary(); !slices.Equal(got, want) {
			t.Errorf("the server has %q, want %q", got, want)
		}
		if got := r.Stats(); got != (Stats{Written: 27, Throttled: 5}) {
			t.Errorf("counted %+v", got)
		}
		if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "object=default/bad") {
			t.Errorf("logged %q", said)
		}
		time.Sleep(10 * time.Minute)
		for range 3 {
			r.Warning(podNamed("bad"), "Failed", "again")
		}
		synctest.Wait()
		if got := s.summary()[0]; got != "bad again x27" {
			t.Errorf("ten minutes later: %s", got)
		}
	})
}

func TestThrottlingCanBeSetAndDisabled(t *testing.T) {
	for _, c := range []struct {
		opts Options
		want string
	}{
		{Options{Burst: -1}, "p m x40"},
		{Options{Burst: 3}, "p m x4"},
		{Options{Burst: 3, RefillInterval: time.Second}, "p m x6"},
	} {
		inBubble(t, c.opts, func(t *testing.T, r *Recorder, s *eventServer) {
			for range 20 {
				r.Normal(podNamed("p"), "R", "m")
			}
			time.Sleep(5 * time.Minute)
			for range 20 {
				r.Normal(podNamed("p"), "R", "m")
			}
			synctest.Wait()
			if got := s.summary(); len(got) != 1 || got[0] != c.want {
				t.Errorf("%+v: %q, want %s", c.opts, got, c.want)
			}
		})
	}
}

// Ten messages of one reason are events of their own; further ones are one event with the
// newest message, until similar events have paused for ten minutes.
func TestSimilarEventsAreCombined(t *testing.T) {
	inBubble(t, Options{Burst: -1}, func(t *testing.T, r *Recorder, s *eventServer) {
		for i := range 15 {
			r.Normal(podNamed("p"), "Scheduled", "m%02d", i)
		}
		r.Normal(podNamed("p"), "Scheduled", "m03") // has an event of its own
		r.Normal(podNamed("p"), "Other", "m20")
		r.Warning(podNamed("p"), "Scheduled", "m21")
		synctest.Wait()
		want := []string{"p (combined from similar events): m14 x5", "p m00 x1", "p m01 x1", "p m02 x1", "p m03 x2", "p m04 x1",
			"p m05 x1", "p m06 x1", "p m07 x1", "p m08 x1", "p m09 x1", "p m20 x1", "p m21 x1"}
		if got := s.summary(); !slices.Equal(got, want) {
			t.Errorf("the server has %q, want %q", got, want)
		}
		if got := r.Stats(); got != (Stats{Written: 18, Combined: 5}) {
			t.Errorf("counted %+v", got)
		}
		time.Sleep(11 * time.Minute)
		r.Normal(podNamed("p"), "Scheduled", "m30")
		synctest.Wait()
		if got := s.summary(); got[len(got)-1] != "p m30 x1" {
			t.Errorf("after a pause: %q", got)
		}
	})
}

func TestCombiningCanBeSetAndDisabled(t *testing.T) {
	for _, c := range []struct {
		opts Options
		want int
	}{
		{Options{Burst: -1, CombineAfter: -1}, 20},
		{Options{Burst: -1, CombineAfter: 2}, 3},
		{Options{Burst: -1, CombineAfter: 2, CombineWindow: time.Second}, 20},
	} {
		inBubble(t, c.opts, func(t *testing.T, r *Recorder, s *eventServer) {
			for i := range 20 {
				r.Normal(podNamed("p"), "R", "m%d", i)
				time.Sleep(2 * time.Second)
			}
			synctest.Wait()
			if got := s.summary(); len(got) != c.want {
				t.Errorf("%+v: %d events, want %d: %q", c.opts, len(got), c.want, got)
			}
		})
	}
}

// A combined event's message is no longer than any other.
func TestCombinedMessagesAreCut(t *testing.T) {
	inBubble(t, Options{CombineAfter: 1}, func(t *testing.T, r *Recorder, s *eventServer) {
		r.Normal(podNamed("p"), "R", "m")
		r.Normal(podNamed("p"), "R", "%s", strings.Repeat("x", messageMost))
		synctest.Wait()
		for _, event := range s.events {
			if len(event.Message) > messageMost {
				t.Errorf("a message of %d bytes", len(event.Message))
			}
		}
	})
}

func TestFailedWritesAreCounted(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, r *Recorder, s *eventServer) {
		s.refuse = true
		for range 3 {
			r.Normal(podNamed("p"), "R", "m")
		}
		synctest.Wait()
		if got := r.Stats(); got != (Stats{Failed: 3}) || got.Dropped() != 3 {
			t.Errorf("counted %+v", got)
		}
	})
}
