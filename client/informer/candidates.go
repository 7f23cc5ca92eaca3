package informer

import (
	"math/rand/v2"
	"slices"
)

// maxCandidates bounds the objects that a round holds because they seemed to differ: most do only as the
// cache is behind the list that is being read, which may be all of them.
const maxCandidates = 10 * maxCorrections

// candidates are objects that seem to differ from the server's. Of more than maxCandidates it holds some at
// random, so that many that turn out to be equal hide one that differs from some rounds, but not from all.
type candidates struct {
	held []candidate // in no order
	seen int
}

type candidate struct{ key, version string } // the version at the server

func (c *candidates) add(key, version string) {
	c.seen++
	if len(c.held) < maxCandidates {
		c.held = append(c.held, candidate{key, version})
		return
	}
	if at := rand.IntN(c.seen); at < maxCandidates {
		c.held[at] = candidate{key, version}
	}
}

// more reports whether there were others than those held.
func (c *candidates) more() bool { return c.seen > maxCandidates }

// drop forgets those that are equal after all.
func (c *candidates) drop(equal func(candidate) bool) { c.held = slices.DeleteFunc(c.held, equal) }

// some returns n of them at most, each time others: objects that change all the time stay candidates, and
// must not keep the rest from their turn.
func (c *candidates) some(n int) []candidate {
	rand.Shuffle(len(c.held), func(i, j int) { c.held[i], c.held[j] = c.held[j], c.held[i] })
	return c.held[:min(n, len(c.held))]
}
