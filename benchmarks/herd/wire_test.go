package herd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/benchmarks/workload"
)

// envelope is Kubernetes' form of a protobuf object.
func envelope(t testing.TB, kind string, m interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	content, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: content}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(magic), unknown...)
}

// event is a frame of a watch.
func event(t testing.TB, kind string, object []byte) []byte {
	t.Helper()
	frame, err := (&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

func pod(i, version int) *corev1.Pod {
	p := workload.Small(i)
	p.ResourceVersion = strconv.Itoa(version)
	return p
}

func TestReadChange(t *testing.T) {
	p := pod(7, 4711)
	key := Key(p.Namespace, p.Name)
	end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "12", Annotations: map[string]string{initialEnd: "true"}}}
	failure := metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired}
	early := metav1.Status{Code: 504, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: tooLargeCause}}}}
	tests := []struct {
		name  string
		frame []byte
		want  change
	}{
		{"change", event(t, "MODIFIED", envelope(t, "Pod", p)), change{kind: "MODIFIED", object: object{key: key, version: 4711}}},
		{"end of a list", event(t, "BOOKMARK", envelope(t, "Pod", end)), change{kind: "BOOKMARK", initialEnd: true, object: object{key: Key("", ""), version: 12}}},
		{"bookmark", event(t, "BOOKMARK", envelope(t, "Pod", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "13"}})), change{kind: "BOOKMARK", object: object{key: Key("", ""), version: 13}}},
		{"expired", event(t, "ERROR", envelope(t, "Status", &failure)), change{kind: "ERROR", code: 410}},
		{"too large", event(t, "ERROR", envelope(t, "Status", &early)), change{kind: "ERROR", code: 504, tooLarge: true}},
	}
	for _, test := range tests {
		got, err := readChange(test.frame[4:])
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if test.name == "change" {
			if node, err := got.nodeName(); err != nil || node != workload.Node(7) {
				t.Errorf("it runs on %q, %v", node, err)
			}
		}
		got.pod = nil
		if got.kind != test.want.kind || got.key != test.want.key || got.version != test.want.version || got.code != test.want.code ||
			got.initialEnd != test.want.initialEnd || got.tooLarge != test.want.tooLarge {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
	for _, broken := range [][]byte{nil, {0xff}, event(t, "ADDED", []byte("{}"))[4:], event(t, "NEW", envelope(t, "Pod", p))[4:], event(t, "ADDED", envelope(t, "Pod", &corev1.Pod{}))[4:]} {
		if c, err := readChange(broken); !errors.Is(err, errWire) {
			t.Errorf("%.40q: %+v, %v", broken, c, err)
		}
	}
}

// TestItems: a list has the same items in whatever pieces it arrives.
func TestItems(t *testing.T) {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "99"}}
	var want Content
	for i := range 5 {
		p := pod(i, 10+i)
		list.Items = append(list.Items, *p)
		want.Set(Key(p.Namespace, p.Name), uint64(10+i))
	}
	body := envelope(t, "PodList", list)
	for _, size := range []int{1, 7, 1000, len(body)} {
		var l items
		var got Content
		rest := body
		for len(rest) > 0 {
			n := min(size, len(rest))
			err := l.cut(bytes.Clone(rest[:n]), func(item []byte) error {
				o, err := readObject(item)
				got.Set(o.key, o.version)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if got.Digest() != want.Digest() || l.version != 99 {
			t.Errorf("in pieces of %d: %+v at %d, want %+v at 99", size, got.Digest(), l.version, want.Digest())
		}
	}
	if err := new(items).cut([]byte(`{"kind":"PodList"}`), nil); !errors.Is(err, errWire) {
		t.Errorf("JSON: %v", err)
	}
}

func FuzzReadChange(f *testing.F) {
	f.Add(event(f, "ADDED", envelope(f, "Pod", pod(1, 2)))[4:])
	f.Fuzz(func(_ *testing.T, frame []byte) {
		_, _ = readChange(frame) // it must not panic, nor read beyond the end
		_ = new(items).cut(frame, func([]byte) error { return nil })
	})
}

// TestContent: the digest says what is held, not how that came about.
func TestContent(t *testing.T) {
	var a, b Content
	a.Set(1, 10)
	a.Set(2, 20)
	a.Set(2, 21)
	b.Set(3, 5)
	b.Set(2, 21)
	b.Set(1, 10)
	if a.Digest() == b.Digest() {
		t.Error("one has an object more")
	}
	b.Remove(3)
	b.Remove(4)
	if a.Digest() != b.Digest() {
		t.Errorf("%+v and %+v", a.Digest(), b.Digest())
	}
	c := b.clone()
	c.Set(1, 11)
	if b.Digest() != a.Digest() || c.Digest() == b.Digest() {
		t.Error("a clone shares what it holds")
	}
	if Key("ab", "c") == Key("a", "bc") {
		t.Error("names run together")
	}
}
