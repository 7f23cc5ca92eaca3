// Package testseed gives tests random numbers that can be had again. A test that fails says
//
//	-seed=N
//
// and makes the same choices when that is given to go test after the package. Goroutines that run at
// once still take turns as they like.
package testseed

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var given = flag.Uint64("seed", 0, "what random tests choose by; 0: another each time")

// Seed is what all random numbers of a test come from.
type Seed uint64

// New returns the seed of a test, and logs how to give it again.
func New(t testing.TB) Seed {
	t.Helper()
	seed := *given
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed=%d", seed)
	return Seed(seed)
}

// Rand returns the random numbers of a part of the test, such as a goroutine: they are those of
// this part whatever the others do. They are for one goroutine.
func (s Seed) Rand(part int) *rand.Rand { return rand.New(rand.NewPCG(uint64(s), uint64(part))) }
