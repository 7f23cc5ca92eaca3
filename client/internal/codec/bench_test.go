package codec

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client/internal/wiretest"
	"github.com/levelwire/levelwire/client/scheme"
)

// BenchmarkListDecode reads a list of 10,000 pods.
func BenchmarkListDecode(b *testing.B) {
	for _, protobuf := range []bool{false, true} {
		body, contentType, err := Encode(scheme.Default, wiretest.PodList(10_000), protobuf)
		if err != nil {
			b.Fatal(err)
		}
		enc := EncodingOf(contentType)
		b.Run(contentType, func(b *testing.B) { benchList(b, podCodec(), enc, body) })
		b.Run(contentType+" metadata", func(b *testing.B) { benchList(b, metadataCodec(), enc, body) })
		if !protobuf {
			b.Run(contentType+" dynamic", func(b *testing.B) { benchList(b, dynamicCodec(), enc, body) })
		}
	}
}

func benchList[T Item](b *testing.B, c *Codec[T], enc Encoding, body []byte) {
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		list, err := c.DecodeList(enc, NewSource(bytes.NewReader(body), 64<<20))
		if err != nil || len(list.Items) != 10_000 {
			b.Fatal(err)
		}
	}
}

// BenchmarkWatchDecode reads events, one for each iteration.
func BenchmarkWatchDecode(b *testing.B) {
	for _, protobuf := range []bool{false, true} {
		var body []byte
		for i := range 100 {
			body = append(body, encodedEvent(b, watch.Modified, wiretest.Pod(i), protobuf)...)
		}
		b.Run(fmt.Sprintf("protobuf=%v", protobuf), func(b *testing.B) {
			b.SetBytes(int64(len(body) / 100))
			b.ReportAllocs()
			events := readerFor(podCodec(), protobuf, &endless{whole: body})
			for b.Loop() {
				if _, _, err := events.next(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// endless repeats its bytes.
type endless struct{ whole, rest []byte }

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		e.rest = e.whole
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

var _ io.Reader = (*endless)(nil)
