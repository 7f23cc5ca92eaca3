package main

import (
	"bufio"
	"encoding/binary"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/levelwire/levelwire/benchmarks/workload"
)

func count(t *testing.T, task getTask, answer string) (int, error) {
	t.Helper()
	return task.countObjects(bufio.NewReader(strings.NewReader(answer)))
}

func TestItemsOfAListAreCounted(t *testing.T) {
	task := getTask{Accept: jsonType}
	for answer, want := range map[string]int{
		`{"kind":"PodList","metadata":{"x":[{}]},"items":[{"a":"}{"},{"b":[{},{}],"c":"\"]}"}]}`: 2,
		`{"items":[{}],"metadata":{}}` + "\n":                                                    1,
	} {
		if n, err := count(t, task, answer); n != want || err != nil {
			t.Errorf("%s: %d items, %v; want %d", answer, n, err, want)
		}
	}
	for _, broken := range []string{``, `{"items":[{}`, `{"items":[{}]}}`, `{"items":[]}`, `{"items":["\`} {
		if n, err := count(t, task, broken); err == nil {
			t.Errorf("%s: %d items, want an error", broken, n)
		}
	}
}

// bookmark is how both servers end a streamed list.
const bookmark = `{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"annotations":{"` + initialEventsEnd + `":"true"}}}}` + "\n"

func TestEventsAreCounted(t *testing.T) {
	task := getTask{Accept: jsonType, Stream: true}
	const added = `{"type":"ADDED","object":{"kind":"Pod"}}` + "\n"
	if n, err := count(t, task, added+added+bookmark); n != 2 || err != nil {
		t.Errorf("%d events, %v; want 2", n, err)
	}
	for _, broken := range []string{``, added, added + `{"type":"ERROR","object":{}}` + "\n" + bookmark} {
		if n, err := count(t, task, broken); err == nil {
			t.Errorf("%s: %d events, want an error", broken, n)
		}
	}
}

func TestProtobufIsCounted(t *testing.T) {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for i := range 3 {
		list.Items = append(list.Items, *workload.Small(i))
	}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	encoded, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), list)
	if err != nil {
		t.Fatal(err)
	}
	task := getTask{Accept: protobufType}
	if n, err := count(t, task, string(encoded)); n != 3 || err != nil {
		t.Errorf("%d items, %v; want 3", n, err)
	}
	for _, cut := range []int{0, 3, 10, len(encoded) / 2, len(encoded) - 20} {
		if n, err := count(t, task, string(encoded[:cut])); err == nil {
			t.Errorf("%d bytes: %d items, want an error", cut, n)
		}
	}
}

func TestProtobufEventsAreCounted(t *testing.T) {
	var stream []byte
	event := func(content string) {
		stream = binary.BigEndian.AppendUint32(stream, uint32(len(content)))
		stream = append(stream, content...)
	}
	event("\x0a\x05ADDED\x12\x02xx")
	event("\x0a\x05ADDED\x12\x02yy")
	task := getTask{Accept: protobufType, Stream: true}
	if n, err := count(t, task, string(stream)); err == nil {
		t.Errorf("without a bookmark: %d events, want an error", n)
	}
	event("\x0a\x08BOOKMARK\x12\x40" + initialEventsEnd + "and what comes after it")
	for _, end := range []int{len(stream), len(stream) - 10} {
		if n, err := count(t, task, string(stream[:end])); n != 2 || err != nil {
			t.Errorf("%d events, %v; want 2", n, err)
		}
	}
}

// TestTheMarkIsFoundWhereverPiecesAreCut: the end of a streamed list must not be
// missed, or the client would wait for ever.
func TestTheMarkIsFoundWhereverPiecesAreCut(t *testing.T) {
	for cut := range len(bookmark) {
		a := &answer{task: &getTask{Stream: true}}
		if found := a.marked([]byte(bookmark[:cut])) || a.marked([]byte(bookmark[cut:])); !found {
			t.Errorf("cut after %d bytes it is not found", cut)
		}
		a = &answer{task: &getTask{Stream: true}}
		other := strings.ReplaceAll(bookmark, "initial-events", "another-events")
		if a.marked([]byte(other[:cut])) || a.marked([]byte(other[cut:])) {
			t.Errorf("cut after %d bytes something else is taken for it", cut)
		}
	}
	var single answer
	single.task = &getTask{Stream: true}
	found := false
	for _, c := range []byte(bookmark) {
		found = found || single.marked([]byte{c})
	}
	if !found {
		t.Error("in pieces of a byte it is not found")
	}
}
