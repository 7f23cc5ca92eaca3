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

func BenchmarkAddWhatWaits(b *testing.B) {
	q := New(Options[string]{})
	q.Add("namespace/name")
	b.ReportAllocs()
	for b.Loop() {
		q.Add("namespace/name")
	}
}

// BenchmarkPriorities is a fresh change at a time in front of 100,000 keys of
// the first list.
func BenchmarkPriorities(b *testing.B) {
	q := New(Options[int]{FairShare: 16})
	const low = 100_000
	for key := range low {
		q.AddWith(key, AddOptions{Priority: -100})
	}
	b.ReportAllocs()
	for key := low; b.Loop(); key++ {
		q.Add(key)
		taken, _ := q.Get(b.Context())
		q.Done(taken)
		if taken < low {
			q.AddWith(taken, AddOptions{Priority: -100})
		}
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

// BenchmarkMillionDelayed is one more and one less in a heap of a million.
func BenchmarkMillionDelayed(b *testing.B) {
	q := New(Options[int]{})
	for key := range 1_000_000 {
		q.AddAfter(key, time.Hour+time.Duration(key*7919%1_000_000)*time.Microsecond)
	}
	b.ReportAllocs()
	for key := 0; b.Loop(); key++ {
		q.AddAfter(key%1_000_000, time.Hour-time.Duration(key))
	}
	q.ShutDown()
}

func BenchmarkContended(b *testing.B) {
	q := New(Options[int]{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for key := 0; pb.Next(); key++ {
			q.Add(key % 1000)
			if taken, ok, _ := q.take(b.Context()); ok {
				q.Done(taken)
			}
		}
	})
}
