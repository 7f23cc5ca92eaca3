package informer_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// lamp is an object with methods of the program that panic for what is broken.
type lamp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Rooms             map[room]string `json:"rooms,omitempty"`
	Bulb              *bulb           `json:"bulb,omitempty"`
}

func (l *lamp) DeepCopyObject() runtime.Object { c := *l; return &c }

type room string

func (r *room) UnmarshalText(text []byte) error {
	if string(text) == "broken" {
		panic("no room")
	}
	*r = room(text)
	return nil
}

type bulb struct{ watts string }

func (b *bulb) UnmarshalJSON(data []byte) error {
	if string(data) == `"broken"` {
		panic("no bulb")
	}
	b.watts = string(data)
	return nil
}

// lamps has two lamps, the second of which comes by watches. They are broken until it is mended.
type lamps struct {
	listed, sent string // members of a broken lamp
	mended       atomic.Bool
}

func (s *lamps) RoundTrip(r *http.Request) (*http.Response, error) {
	item := func(name, version, broken string) string {
		if broken == "" || s.mended.Load() {
			broken = `"rooms":{"hall":"on"},"bulb":"60"`
		}
		return `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"namespace":"ns","name":"` + name + `","resourceVersion":"` + version + `"},` + broken + `}`
	}
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	if r.URL.Query().Get("watch") != "true" {
		resp.Body = io.NopCloser(strings.NewReader(`{"apiVersion":"example.com/v1","kind":"LampList","metadata":{"resourceVersion":"5"},"items":[` + item("a", "4", s.listed) + `]}`))
		return resp, nil
	}
	events := ""
	if r.URL.Query().Get("resourceVersion") == "5" {
		events = `{"type":"ADDED","object":` + item("b", "6", s.sent) + "}\n"
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader(events), unendingBody{r.Context()}), unendingBody{}}
	return resp, nil
}

// Methods of the program's types that panic while an object is decoded: the object is one that cannot be
// decoded. The cache keeps what it holds, and goes on when the object is another one.
func TestDecodingThatPanics(t *testing.T) {
	const badKey, badValue = `"rooms":{"broken":"on"}`, `"bulb":"broken"`
	for name, test := range map[string]struct{ listed, sent, says string }{
		"the key of a map in a list":   {badKey, "", "no room"},
		"a member in a list":           {badValue, "", "no bulb"},
		"the key of a map in an event": {"", badKey, "no room"},
		"a member in an event":         {"", badValue, "no bulb"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &lamps{listed: test.listed, sent: test.sent}
				c, err := client.New(&rest.Config{Host: "http://server"}, client.Options{WrapTransport: func(http.RoundTripper) http.RoundTripper { return server }})
				if err != nil {
					t.Fatal(err)
				}
				var log bytes.Buffer
				resource := client.ForResource(c, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lamps"}, func() *lamp { return new(lamp) })
				i := informer.New("lamps", reflector.Resource(resource, nil), reflector.Options{PagedList: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- i.Run(ctx) }()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if _, ok := i.Lister().Get("ns", "a"); ok != (server.listed == "") {
					t.Errorf("a is in the cache: %v", ok)
				}
				if s := i.Stats().Reflector; s.DecodeErrors < 2 || s.LastError == nil {
					t.Errorf("%+v", s)
				}
				server.mended.Store(true)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := i.Lister().Len(); n != 2 || !i.HasSynced() || i.Err() != nil {
					t.Errorf("%d lamps, %v", n, i.Err())
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if !strings.Contains(log.String(), "panicked: "+test.says) {
					t.Errorf("logged %s", log.String())
				}
			})
		})
	}
}
