package testseed

import (
	"fmt"
	"testing"
)

// logged is a test whose log is read.
type logged struct {
	testing.TB
	lines []string
}

func (l *logged) Helper() {}

func (l *logged) Logf(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func TestSeedCanBeGivenAgain(t *testing.T) {
	before := *given
	defer func() { *given = before }()
	*given = 0
	first, second := &logged{TB: t}, &logged{TB: t}
	seed := New(first)
	*given = uint64(seed)
	again := New(second)
	if want := fmt.Sprintf("-seed=%d", seed); again != seed || len(first.lines) != 1 || first.lines[0] != want || second.lines[0] != want {
		t.Errorf("seed %d, then %d; %q, then %q", seed, again, first.lines, second.lines)
	}
	if a, b := seed.Rand(1).Uint64(), again.Rand(1).Uint64(); a != b {
		t.Errorf("one part: %d, then %d", a, b)
	}
	if a, b := seed.Rand(1).Uint64(), seed.Rand(2).Uint64(); a == b {
		t.Errorf("two parts: %d", a)
	}
}
