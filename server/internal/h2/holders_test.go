package h2

import (
	"testing"

	"github.com/levelwire/levelwire/internal/testseed"
)

// TestLargestHolder: whatever connections begin and cease to hold, the largest is found,
// without looking at all.
func TestLargestHolder(t *testing.T) {
	s := New(Options{})
	conns := make([]*conn, 100)
	for i := range conns {
		conns[i] = &conn{server: s}
	}
	random := testseed.New(t).Rand(0)
	for range 20_000 {
		c := conns[random.IntN(len(conns))]
		n := random.Int64N(1000)
		if random.IntN(2) == 0 {
			n = -min(n, c.held)
		}
		if random.IntN(20) == 0 {
			n = -c.held
		}
		s.hold(c, n)
		var most, sum int64
		for _, c := range conns {
			most = max(most, c.held)
			sum += c.held
		}
		if sum != s.heldBytes {
			t.Fatalf("%d bytes are held, and %d counted", sum, s.heldBytes)
		}
		if got := s.largest(); (got == nil) != (most == 0) || got != nil && got.held != most {
			t.Fatalf("%v is the largest, and one holds %d", got, most)
		}
	}
	for _, c := range conns {
		s.hold(c, -c.held)
	}
	if len(s.holders) != 0 || s.heldBytes != 0 {
		t.Errorf("%d connections hold %d bytes", len(s.holders), s.heldBytes)
	}
}

// BenchmarkLargestHolder is what the first request of a connection costs while the budget
// is used up, with 50,000 connections.
func BenchmarkLargestHolder(b *testing.B) {
	s := New(Options{})
	for i := range 50_000 {
		c := &conn{server: s}
		s.conns[c] = struct{}{}
		s.hold(c, int64(1+i))
	}
	for b.Loop() {
		largest := s.largest()
		held := largest.held
		s.hold(largest, -held)
		s.hold(largest, held)
	}
}
