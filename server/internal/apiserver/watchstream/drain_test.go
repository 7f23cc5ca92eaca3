package watchstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// TestWake wakes streams of one connection and of none.
func TestWake(t *testing.T) {
	group := &scheduler{}
	first, second, alone := &Stream{scheduler: group}, &Stream{scheduler: group}, &Stream{}
	for _, s := range []*Stream{first, second, alone} {
		s.owner = newOwnership()
	}
	if starter := first.Wake(); starter != nil {
		t.Error("a stream that its request's goroutine owns started its scheduler")
	}
	for _, s := range []*Stream{first, second, alone} {
		for !s.owner.release() {
		}
	}
	if starter := first.Wake(); starter != watchcache.Starter(group) {
		t.Errorf("the first to be awake must start the scheduler, not %v", starter)
	}
	if starter := second.Wake(); starter != nil {
		t.Error("the second must not start the scheduler again")
	}
	if starter := alone.Wake(); starter != nil || len(alone.owner.handedOff) != 1 {
		t.Error("a stream without a scheduler must be handed off to its request's goroutine")
	}
}

// outbox is an EventWriter that keeps what is written.
type outbox struct{ written bytes.Buffer }

func (o *outbox) Write(events []byte) error { _, err := o.written.Write(events); return err }
func (o *outbox) String() string            { return o.written.String() }

func (o *outbox) Begin(string, bool) {}
func (o *outbox) Single() bool       { return false }
func (o *outbox) Flush() error       { return nil }

// TestPanicInADrainEndsOneWatch: it happens in a goroutine that no request recovers.
func TestPanicInADrainEndsOneWatch(t *testing.T) {
	things := newThing()
	things.Row = func(resource.Object) []any { panic("boom") }
	cache := watchcache.New(things, watchcache.Options{})
	_, err := cache.Fill(nil, 1)
	must(t, err)
	object, err := cache.Decode("a/it", []byte(`{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"it","namespace":"a"}}`), 2)
	must(t, err)
	cache.Apply([]watchcache.Change{{Key: object.Key, Object: object, Revision: object.Revision}})
	out := new(outbox)
	stream := openStream(t, oneResource{things}, cache, things, encoding.Form{As: encoding.AsTable, MetaVersion: "v1"}, new(scheduler))
	stream.out = out
	if got := stream.drain(new(buffers)); got != needsBlocking || len(stream.owner.handedOff) != 1 {
		t.Fatalf("the drain ended with %d; handed off: %v", got, len(stream.owner.handedOff) == 1)
	}
	if err := stream.writeReady(); err == nil || !strings.Contains(out.String(), `"type":"ERROR"`) || !strings.Contains(out.String(), `"code":500`) || strings.Contains(out.String(), "boom") {
		t.Errorf("the client gets %s, and the stream ends with %v", out, err)
	}
}

// interrupted is a connection on which something happens between the first
// write and the next.
type interrupted struct {
	written []byte
	between func()
}

func (i *interrupted) Connection() interface{ Push() } { return i }
func (i *interrupted) Push()                           {}
func (i *interrupted) TryWrite(parts ...[]byte) bool {
	i.written = append(i.written, slices.Concat(parts...)...)
	if i.between != nil {
		i.between()
		i.between = nil
	}
	return true
}

// TestADefinitionThatChangesDuringADrain: a client that has read an event may change
// the definition, and write by it, before the drain that has sent the event reads
// on.
func TestADefinitionThatChangesDuringADrain(t *testing.T) {
	stored := newThing()
	stored.Mixed = true
	first, second := shownBy(stored, 1), shownBy(stored, 2)
	table := builtin.Table()
	must(t, table.Add(first))
	cache := watchcache.New(stored, watchcache.Options{})
	_, err := cache.Fill(nil, 1)
	must(t, err)
	put := func(name string, revision storage.Revision) {
		object, err := cache.Decode("a/"+name, fmt.Appendf(nil, `{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":%q,"namespace":"a"}}`, name), revision)
		must(t, err)
		cache.Apply([]watchcache.Change{{Key: object.Key, Object: object, Revision: object.Revision}})
	}
	connection := &interrupted{between: func() {
		must(t, table.Replace([]schema.GroupVersionResource{first.GroupVersionResource()}, second))
		put("after", 3)
	}}
	put("before", 2)
	stream := openStream(t, table, cache, first, encoding.Form{}, &scheduler{connection: connection})
	stream.shared = connection
	if got := stream.collect(new(buffers)); got != drained {
		t.Errorf("the drain ended with %d", got)
	}
	var shown []string
	for line := range strings.Lines(string(connection.written)) {
		_, name, _ := strings.Cut(line, `"name":"`)
		_, generation, _ := strings.Cut(line, `"generation":`)
		shown = append(shown, name[:6]+" by "+generation[:1])
	}
	if want := []string{`before by 1`, `after" by 2`}; !slices.Equal(shown, want) {
		t.Errorf("shown were %q, want %q: %s", shown, want, connection.written)
	}
}

// TestEventsBeforeOneThatCannotBeShown are sent, counted, and followed by the
// reason, whether the scheduler or the request's goroutine reads them.
func TestEventsBeforeOneThatCannotBeShown(t *testing.T) {
	stored := newThing()
	stored.Mixed = true
	things := shownBy(stored, 1)
	things.FromStorage = func(_ context.Context, obj resource.Object) (resource.Object, error) {
		if obj.GetName() == "bad" {
			return nil, errors.New("no such thing")
		}
		return obj, nil
	}
	cache := watchcache.New(stored, watchcache.Options{})
	_, err := cache.Fill(nil, 1)
	must(t, err)
	for i, name := range []string{"one", "two", "bad"} {
		object, err := cache.Decode("a/"+name, fmt.Appendf(nil, `{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":%q,"namespace":"a"}}`, name), storage.Revision(2+i))
		must(t, err)
		cache.Apply([]watchcache.Change{{Key: object.Key, Object: object, Revision: object.Revision}})
	}
	for _, together := range []bool{true, false} {
		out, connection := new(outbox), new(interrupted)
		stream := openStream(t, oneResource{things}, cache, things, encoding.Form{}, &scheduler{connection: connection})
		stream.out, stream.shared = out, connection
		if together {
			if got := stream.collect(new(buffers)); got != needsBlocking {
				t.Errorf("the drain ended with %d", got)
			}
		}
		if err := stream.writeReady(); err == nil {
			t.Error("the stream goes on")
		}
		shown := string(connection.written) + out.String()
		if n := counterValue(t, stream.sent); n != 2 || strings.Count(shown, `"ADDED"`) != 2 || strings.Count(shown, `"ERROR"`) != 1 || !strings.HasSuffix(shown, "}\n") {
			t.Errorf("by the scheduler: %v: %v events are counted, and sent is %s", together, n, shown)
		}
	}
}
