package watchstream

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/reauthorization"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// withdrawing gives every right until there is a reason not to.
type withdrawing struct{ reason error }

func (w *withdrawing) Reauthorize(context.Context, auth.Attributes) (withdrawn, err error) {
	return w.reason, nil
}

func (w *withdrawing) OnChange(func(string)) (stop func()) { return func() {} }

// pushed is a connection that counts what is written until it is pushed.
type pushed struct {
	room    int // of further writes
	written []byte
	push    func()
}

func (p *pushed) Connection() interface{ Push() } { return p }
func (p *pushed) Push()                           { p.push() }
func (p *pushed) TryWrite(parts ...[]byte) bool {
	if p.room--; p.room < 0 {
		return false
	}
	p.written = append(p.written, bytes.Join(parts, nil)...)
	return true
}

// TestWithdrawnRightsAreToldAtOnce: the watches of a connection get their errors by one
// push, and are ended after it; one for which there is no room writes its error by itself.
func TestWithdrawnRightsAreToldAtOnce(t *testing.T) {
	things := newThing()
	cache := watchcache.New(things, watchcache.Options{})
	_, err := cache.Fill(nil, 1)
	must(t, err)
	authorizer := &withdrawing{}
	open := reauthorization.New(reauthorization.Config{Authorizer: authorizer, Logger: slog.New(slog.DiscardHandler)})
	connection := &pushed{room: 2}
	group := &scheduler{connection: connection, running: true} // no goroutine is started
	streams := make([]*Stream, 3)
	outs := make([]outbox, len(streams))
	for i := range streams {
		s := openStream(t, oneResource{things}, cache, things, encoding.Form{}, group)
		s.shared, s.out = connection, &outs[i]
		open.Register(t.Context(), &s.member, s, reauthorization.Rights{Watch: &auth.Attributes{Verb: "watch"}})
		if !s.owner.release() {
			t.Fatal("the stream is not idle")
		}
		streams[i] = s
	}
	pushes := 0
	connection.push = func() {
		pushes++
		if got := bytes.Count(connection.written, []byte(`"type":"ERROR"`)); got != 2 {
			t.Errorf("%d errors are pushed, want 2", got)
		}
		for i, s := range streams {
			if handed := len(s.owner.handedOff) == 1; handed != (i == 0) { // the last to join is the first that is woken
				t.Errorf("stream %d is handed off before the push: %v", i, handed)
			}
		}
	}
	authorizer.reason = apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("the right was withdrawn"))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { open.Run(ctx); close(ended) }() // its first pass decides about all
	for group.count() < len(streams) {
		select {
		case <-t.Context().Done():
			t.Fatal("the streams are not woken")
		default:
		}
	}
	stop()
	<-ended
	group.run()
	if pushes != 1 {
		t.Errorf("%d pushes", pushes)
	}
	for i, s := range streams {
		if len(s.owner.handedOff) != 1 {
			t.Fatalf("stream %d is not handed off", i)
		}
		if err := s.writeReady(); err == nil {
			t.Errorf("stream %d goes on", i)
		}
		if i > 0 {
			s.fail(errors.New("another reason"))
		}
		if got, want := strings.Count(outs[i].String(), "the right was withdrawn"), map[bool]int{true: 1}[i == 0]; got != want || i > 0 && outs[i].String() != "" {
			t.Errorf("stream %d has written its error %d times by itself, want %d", i, got, want)
		}
	}
}

// lookedUp calls a function when a definition is looked up, which is after each read.
type lookedUp struct {
	oneResource
	then func()
}

func (l *lookedUp) Lookup(group, version, plural string) *resource.Resource {
	l.then()
	return l.oneResource.Lookup(group, version, plural)
}

// TestRightWithdrawnDuringARead: a stream that was about to read when its right was withdrawn, and
// runs again later, sends nothing of what it reads then: neither its drain nor its request's goroutine.
func TestRightWithdrawnDuringARead(t *testing.T) {
	for name, drains := range map[string]bool{"drain": true, "request's goroutine": false} {
		t.Run(name, func(t *testing.T) {
			things := newThing()
			things.Mixed = true
			cache := watchcache.New(things, watchcache.Options{})
			_, err := cache.Fill(nil, 1)
			must(t, err)
			authorizer := &withdrawing{}
			ended := make(chan int, 1)
			open := reauthorization.New(reauthorization.Config{Authorizer: authorizer, Logger: slog.New(slog.DiscardHandler), Ended: func(watches int) { ended <- watches }})
			ctx, stop := context.WithCancel(t.Context())
			stopped := make(chan struct{})
			withdraw := sync.OnceFunc(func() {
				authorizer.reason = apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("the right was withdrawn"))
				go func() { open.Run(ctx); close(stopped) }() // its first pass decides about all
				<-ended
			})
			connection := &pushed{room: 100}
			out := new(outbox)
			s := openStream(t, &lookedUp{oneResource{things}, withdraw}, cache, things, encoding.Form{}, &scheduler{connection: connection, running: true})
			s.shared, s.out = connection, out
			open.Register(t.Context(), &s.member, s, reauthorization.Rights{Watch: &auth.Attributes{Verb: "watch"}})
			object, err := cache.Decode("a/late", []byte(`{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"late","namespace":"a"}}`), 2)
			must(t, err)
			cache.Apply([]watchcache.Change{{Key: object.Key, Object: object, Revision: object.Revision}})
			if drains && s.drain(new(buffers)) != needsBlocking {
				t.Error("the drain did not leave the error to the request's goroutine")
			}
			if err := s.writeReady(); err == nil {
				t.Error("the stream goes on")
			}
			stop()
			<-stopped
			if sent := string(connection.written) + out.String(); strings.Contains(sent, `"late"`) || strings.Count(sent, "the right was withdrawn") != 1 {
				t.Errorf("sent %s", sent)
			}
		})
	}
}

func (c *scheduler) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.awake)
}
