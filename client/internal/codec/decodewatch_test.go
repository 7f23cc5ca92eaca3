package codec

import (
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client/internal/wiretest"
	"github.com/levelwire/levelwire/client/scheme"
)

// encodedEvent encodes an event as servers do.
func encodedEvent(t testing.TB, typ watch.EventType, obj runtime.Object, protobuf bool) []byte {
	t.Helper()
	data, _, err := Encode(scheme.Default, obj, protobuf)
	if err != nil {
		t.Fatal(err)
	}
	return wiretest.Frame(t, typ, data, protobuf)
}

func TestCutStreamsAreNotCleanEnds(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		whole := encodedEvent(t, watch.Added, wiretest.Pod(1), protobuf)
		for cut := 1; cut < len(whole); cut++ {
			if !protobuf && cut == len(whole)-1 {
				continue // all but the newline is a whole event
			}
			events := readerFor(podCodec(), protobuf, strings.NewReader(string(whole[:cut])))
			if _, _, err := events.next(); err == nil || err == io.EOF {
				t.Fatalf("protobuf %v cut after %d bytes: %v", protobuf, cut, err)
			}
		}
	}
}

// The type may come after the object; then it costs a copy, and works.
func TestMembersInAnyOrder(t *testing.T) {
	body := `{"object":{"metadata":{"name":"a"}},"extra":[1],"type":"ADDED"} {"object":{"kind":"Status","code":410,"reason":"Expired"},"type":"ERROR"}`
	events := readerFor(podCodec(), false, strings.NewReader(body))
	ev, _, err := events.next()
	if err != nil || ev.Type != watch.Added || ev.Object.Name != "a" {
		t.Errorf("got %+v, %v", ev, err)
	}
	_, status, err := events.next()
	if err != nil || status == nil || status.Code != 410 {
		t.Errorf("got %+v, %v", status, err)
	}
}

func readerFor[T Item](c *Codec[T], protobuf bool, r io.Reader) eventReader[T] {
	src := NewSource(r, 1<<20)
	if protobuf {
		return &protobufEvents[T]{codec: c, src: src, share: c.newSharer()}
	}
	return &jsonEvents[T]{codec: c, src: src, dec: newJSONReader(src, c.newSharer())}
}

func FuzzWatchJSON(f *testing.F) {
	f.Add(append(encodedEvent(f, watch.Added, wiretest.Pod(1), false), encodedEvent(f, watch.Bookmark, wiretest.Bookmark("7", true), false)...))
	f.Add([]byte(`{"object":{"metadata":{"name":"a"}},"type":"DELETED"}`))
	f.Add([]byte(`{"type":"ERROR","object":{"kind":"Status","code":410}}`))
	f.Add([]byte(`{"type":"ADDED","object":{}}{"type":`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzWatch(t, podCodec(), false, data)
		fuzzWatch(t, dynamicCodec(), false, data)
	})
}

func FuzzWatchProtobuf(f *testing.F) {
	f.Add(append(encodedEvent(f, watch.Added, wiretest.Pod(1), true), encodedEvent(f, watch.Bookmark, wiretest.Bookmark("7", true), true)...))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte("\x00\x00\x00\x01\x0a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzWatch(t, podCodec(), true, data)
		fuzzWatch(t, metadataCodec(), true, data)
	})
}

// fuzzWatch checks what must hold for any bytes: the stream ends, events are
// whole, and the same ones come however the bytes are cut into reads.
func fuzzWatch[T Item](t *testing.T, c *Codec[T], protobuf bool, data []byte) {
	fast := readerFor(c, protobuf, strings.NewReader(string(data)))
	slow := readerFor(c, protobuf, &oneByte{data: data})
	for range len(data) + 1 {
		a, aStatus, aErr := fast.next()
		b, bStatus, bErr := slow.next()
		if (aErr == nil) != (bErr == nil) || (aErr == io.EOF) != (bErr == io.EOF) || a.Type != b.Type || (aStatus == nil) != (bStatus == nil) {
			t.Fatalf("at once: %v %v; byte by byte: %v %v", a.Type, aErr, b.Type, bErr)
		}
		if aErr != nil {
			return
		}
		if aStatus == nil && (a.Type == "" || a.Type == watch.Error || a.Object.GetName() != b.Object.GetName()) {
			t.Fatalf("event %+v", a)
		}
	}
	t.Fatal("more events than bytes")
}
