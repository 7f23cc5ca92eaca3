package codec

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// repeating is a text and then another one for ever.
type repeating struct{ begin, goesOn string }

func (r *repeating) Read(p []byte) (int, error) {
	n := copy(p, r.begin)
	r.begin = r.begin[n:]
	for n < len(p) {
		n += copy(p[n:], r.goesOn)
	}
	return n, nil
}

// TestMemoryOfAnswersThatDoNotEnd: an object over the limit takes a few times the limit, in all.
func TestMemoryOfAnswersThatDoNotEnd(t *testing.T) {
	const limit = 8 << 20
	for name, body := range map[string]*repeating{
		"white space":          {"", " "},
		"white space, later":   {`{"items":[{"metadata":{"name":"a"}},`, " "},
		"a string":             {`{"kind":"PodList","metadata":{"resourceVersion":"`, "1"},
		"a string in an item":  {`{"items":[{"metadata":{"name":"`, "1"},
		"a member of the list": {`{"items":[],"other":[`, "1,"},
		"a name":               {`{"`, "k"},
		"deep nesting":         {`{"other":`, "["},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := New(corev1.SchemeGroupVersion.WithKind("Pod"), FormTyped, func() *corev1.Pod { return &corev1.Pod{} }).DecodeList(EncodingJSON, NewSource(io.Reader(body), limit))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrFrameTooLarge) {
			t.Errorf("%s: got %v", name, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 5*limit {
			t.Errorf("%s: %d MB were allocated for a limit of %d", name, took>>20, limit>>20)
		}
		if err != nil && !strings.Contains(err.Error(), "MaxFrameBytes") {
			t.Errorf("%s: %v does not say what to do", name, err)
		}
	}
}
