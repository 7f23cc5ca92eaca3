package resource_test

import (
	"testing"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// storedPod is the stored form of podJSON.
func storedPod(tb testing.TB) []byte {
	tb.Helper()
	pods := builtin.Table().Lookup("", "v1", "pods")
	obj, err := pods.Decode(tb.Context(), []byte(podJSON))
	if err != nil {
		tb.Fatal(err)
	}
	stored, err := pods.Encode(tb.Context(), obj)
	if err != nil {
		tb.Fatal(err)
	}
	return stored
}

func BenchmarkPod(b *testing.B) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	stored := storedPod(b)
	cached, err := pods.WithRevision(stored, 123456)
	if err != nil {
		b.Fatal(err)
	}
	obj, err := pods.Decode(b.Context(), cached)
	if err != nil {
		b.Fatal(err)
	}
	envelope, err := resource.MarshalProtobuf(obj, pods.GroupVersionKind())
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d bytes of JSON, %d of protobuf", len(cached), len(envelope))
	var room []byte
	for _, bench := range []struct {
		name string
		do   func() error
	}{
		{"Encode", func() error { _, err := pods.Encode(b.Context(), obj); return err }},
		{"WithRevision", func() error { _, err := pods.WithRevision(stored, 123456); return err }},
		{"WithRevisionOfProtobuf", func() error { _, err := pods.WithRevision(envelope, 123456); return err }},
		{"Attributes", func() error { _, err := pods.Attributes(cached); return err }},
		{"Decode", func() error { _, err := pods.Decode(b.Context(), cached); return err }},
		{"DecodeBodyJSON", func() error { _, _, _, err := pods.DecodeBody(resource.MediaTypeJSON, cached); return err }},
		{"DecodeBodyProtobuf", func() error { _, _, _, err := pods.DecodeBody(resource.MediaTypeProtobuf, envelope); return err }},
		{"MarshalProtobuf", func() error { _, err := resource.MarshalProtobuf(obj, pods.GroupVersionKind()); return err }},
		{"AppendProtobuf", func() error { out, err := pods.AppendProtobuf(room[:0], cached); room = out; return err }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(cached)))
			for b.Loop() {
				if err := bench.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
