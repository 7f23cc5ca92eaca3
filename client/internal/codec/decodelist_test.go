package codec

import (
	"errors"
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/client/internal/wiretest"
	"github.com/levelwire/levelwire/client/scheme"
)

// A list that ends too early is a cut connection, never a shorter list.
func TestCutLists(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		body, contentType, err := Encode(scheme.Default, wiretest.PodList(2), protobuf)
		if err != nil {
			t.Fatal(err)
		}
		enc := EncodingOf(contentType)
		c := podCodec()
		if _, err := listFrom(c, enc, NewSource(strings.NewReader(string(body)), -1)); err != nil {
			t.Fatal(err)
		}
		for cut := range body {
			_, err := listFrom(c, enc, NewSource(strings.NewReader(string(body[:cut])), -1))
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s cut after %d of %d bytes: %v", contentType, cut, len(body), err)
			}
		}
	}
}

func FuzzListJSON(f *testing.F) {
	body, _, err := Encode(scheme.Default, wiretest.PodList(2), false)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(body), `{"items":null}`, `{"items":[{}],"kind":"PodList"}`, `{"items":[`, "\xff", `{"metadata":{"resourceVersion":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzList(t, podCodec(), EncodingJSON, data)
		fuzzList(t, dynamicCodec(), EncodingJSON, data)
	})
}

func FuzzListProtobuf(f *testing.F) {
	body, _, err := Encode(scheme.Default, wiretest.PodList(2), true)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte("k8s\x00"))
	f.Add([]byte("k8s\x00\x12\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzList(t, podCodec(), EncodingProtobuf, data)
	})
}

// fuzzList checks what must hold for any bytes: an error or a list without
// holes, and the same one however the bytes are cut into reads.
func fuzzList[T Item](t *testing.T, c *Codec[T], enc Encoding, data []byte) {
	const limit = 1 << 20
	list, err := listFrom(c, enc, NewSource(strings.NewReader(string(data)), limit))
	slow, slowErr := listFrom(c, enc, NewSource(&oneByte{data: data}, limit))
	if (err == nil) != (slowErr == nil) {
		t.Fatalf("at once: %v; byte by byte: %v", err, slowErr)
	}
	if err != nil {
		return
	}
	if len(list.Items) != len(slow.Items) || list.ResourceVersion != slow.ResourceVersion {
		t.Fatalf("at once: %d items; byte by byte: %d", len(list.Items), len(slow.Items))
	}
	for i, item := range list.Items {
		if u, ok := any(item).(*unstructured.Unstructured); ok && u.Object == nil {
			t.Fatalf("item %d has no content", i)
		}
	}
}

// oneByte gives one byte for each read.
type oneByte struct{ data []byte }

func (r *oneByte) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	p[0], r.data = r.data[0], r.data[1:]
	return 1, nil
}

// listFrom reads a list, and prefers the error of the stream to the decoder's, as
// a client does.
func listFrom[T Item](c *Codec[T], enc Encoding, src *Source) (*List[T], error) {
	list, err := c.DecodeList(enc, src)
	if ended := src.ReadError(); err != nil && ended != nil {
		err = ended
	}
	return list, err
}
