package openapi

import "testing"

// BenchmarkDocuments describes everything that is built in, as the first
// clients that ask make a server do.
func BenchmarkDocuments(b *testing.B) {
	groups := builtinGroups()
	b.Run("v3", func(b *testing.B) {
		for range b.N {
			builder := NewBuilder("v1.99.0")
			size, packed := 0, 0
			for _, g := range groups {
				d, err := builder.V3Document(g)
				if err != nil {
					b.Fatal(err)
				}
				size, packed = size+d.Size, packed+len(d.Gzip)
			}
			b.ReportMetric(float64(size), "bytes")
			b.ReportMetric(float64(packed), "bytes-kept")
		}
	})
	b.Run("v2", func(b *testing.B) {
		for range b.N {
			d := describeAll(b, groups)
			b.ReportMetric(float64(d.Size), "bytes")
			b.ReportMetric(float64(len(d.Gzip)), "bytes-kept")
		}
	})
	b.Run("v2-protobuf", func(b *testing.B) {
		d := describeAll(b, groups)
		for b.Loop() {
			if _, err := V2Protobuf(d); err != nil {
				b.Fatal(err)
			}
		}
	})
}
