package workqueue

import (
	"testing"
	"time"
)

func BenchmarkAddGetDone(b *testing.B) {
	q := New(Options[string]{})
	b.ReportAllocs()
	for b.Loop() {
		q.Add("namespace/name")
		q.Get(b.Context())
		q.Done("namespace/name")
	}
}

func BenchmarkAddAfter(b *testing.B) {
	q := New(Options[int]{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q.AddAfter(i%100_000, time.Hour+time.Duration(i))
	}
	q.ShutDown()
}
