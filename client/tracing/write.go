package tracing

import (
	"bytes"
	"encoding/binary"
	"regexp"

	"go.opentelemetry.io/otel/trace"
)

// writeKey names the state of an object that a request of this process made. A
// resourceVersion is that of one write of a cluster.
type writeKey struct{ namespace, resourceVersion string }

// maxWrites is how many writes are remembered, until the change comes by the
// watch: the oldest is forgotten.
const maxWrites = 4096

// recentWrites are the spans of requests that wrote, by what they wrote. Its owner
// guards it.
type recentWrites struct {
	spans map[writeKey]trace.SpanContext
	ring  [maxWrites]writeKey // in the order in which they came
	next  int
}

func (w *recentWrites) add(key writeKey, span trace.SpanContext) {
	if w.spans == nil {
		w.spans = map[writeKey]trace.SpanContext{}
	}
	delete(w.spans, w.ring[w.next])
	w.ring[w.next] = key
	w.next = (w.next + 1) % maxWrites
	w.spans[key] = span
}

// addWrite remembers which span wrote an object.
func (t *Tracer) addWrite(namespace string, answer []byte, span trace.SpanContext) {
	version := resourceVersionOf(answer)
	if version == "" || !span.IsSampled() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes.add(writeKey{namespace, version}, span)
}

// linksTo returns a link to the request that wrote a state, if it was one of
// this process.
func (t *Tracer) linksTo(namespace, resourceVersion string) []trace.Link {
	t.mu.Lock()
	defer t.mu.Unlock()
	span, ok := t.writes.spans[writeKey{namespace, resourceVersion}]
	if !ok {
		return nil
	}
	return []trace.Link{{SpanContext: span, Attributes: causes[causeWrite]}}
}

// maxAnswerPrefix is how much of an answer is kept to find its resourceVersion:
// behind it may be names, labels and, of custom resources, managedFields.
const maxAnswerPrefix = 16 << 10

var jsonVersion = regexp.MustCompile(`"resourceVersion":\s*"([^"\\]+)"`)

// protobufMagic begins the protobuf form of objects.
var protobufMagic = []byte("k8s\x00")

// resourceVersionOf finds the resourceVersion in the first bytes of an object;
// "": it is not there.
func resourceVersionOf(answer []byte) string {
	if raw, ok := bytes.CutPrefix(answer, protobufMagic); ok {
		// Unknown.raw, the object's metadata, and its resourceVersion.
		return string(protobufField(protobufField(protobufField(raw, 2), 1), 6))
	}
	if found := jsonVersion.FindSubmatch(answer); found != nil {
		return string(found[1])
	}
	return ""
}

// protobufField returns a field of bytes, as much of it as there is; nil: the
// message does not have the field before something else than bytes or a number.
func protobufField(message []byte, number uint64) []byte {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return nil
		}
		value, m := binary.Uvarint(message[n:])
		if m <= 0 {
			return nil
		}
		message = message[n+m:]
		switch tag & 7 {
		case 0: // a number: it was the value
		case 2:
			length := min(value, uint64(len(message)))
			if tag>>3 == number {
				return message[:length]
			}
			message = message[length:]
		default:
			return nil
		}
	}
	return nil
}
