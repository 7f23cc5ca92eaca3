// Package patterntable bounds the regular expressions that k8s.io/kube-openapi keeps in memory.
//
// Its validator of objects keeps each pattern that it has compiled until the process ends, and copies the table of all
// of them for each new one. Definitions come and go while a server runs, so the table would grow without end. This
// package compiles the patterns of a schema itself, puts them into the library's table before objects are validated,
// and takes those out that no schema uses, or that have not been used for the longest. A pattern that is not in the
// table is compiled again when it is needed: which patterns are there changes no answer.
package patterntable

import (
	"cmp"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
)

// maxPatterns and maxSteps bound what is in the table.
const (
	maxPatterns = 30_000
	maxSteps    = 6_000_000 // 240 MB
)

// shared is the only table: the library has one.
var shared = table{maxPatterns: maxPatterns, maxSteps: maxSteps}

// table is what of the library's table belongs to sets. It is safe for concurrent use.
type table struct {
	maxPatterns, maxSteps int

	clock   atomic.Int64 // counts the uses of sets
	mu      sync.Mutex
	sets    map[*Set]struct{} // those that are loaded
	entries map[string]*entry
	steps   int
}

// entry is a pattern of loaded sets.
type entry struct {
	compiled *regexp.Regexp
	steps    int
	sets     int
}

// Set are the patterns of a schema. It is safe for concurrent use.
type Set struct {
	table    *table
	patterns map[string]int // and how many steps each has when it is compiled
	loaded   atomic.Bool    // changed under the table's lock
	used     atomic.Int64   // by the table's clock
}

// New returns a set that is not loaded. What the patterns have for steps is an estimate.
func New(patterns map[string]int) *Set { return shared.newSet(patterns) }

func (t *table) newSet(patterns map[string]int) *Set { return &Set{table: t, patterns: patterns} }

// Load puts the patterns into the library's table, if it is found. It is called before each validation. A nil set has none.
func (s *Set) Load() {
	if s == nil || len(s.patterns) == 0 || !found() {
		return
	}
	s.used.Store(s.table.clock.Add(1))
	if !s.loaded.Load() {
		s.table.load(s)
	}
}

// Forget takes those patterns out of the library's table that no other set has loaded.
func (s *Set) Forget() {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.remove(s) {
		t.publish()
	}
}

// Trim takes those patterns out of the library's table that no set has loaded: those that the library itself has
// compiled, for the default values of definitions.
func Trim() { shared.trim() }

func (t *table) trim() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found() && len(published()) != len(t.entries) {
		t.publish()
	}
}

func (t *table) load(s *Set) {
	compiled := t.compile(s)
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.loaded.Load() {
		return
	}
	t.add(s, compiled)
	t.evict(s)
	t.publish()
	s.loaded.Store(true) // from now on a validation finds its patterns
}

// compile compiles the patterns that the table does not have. One that cannot be compiled is left out: the library
// reports it, and does not keep it.
func (t *table) compile(s *Set) map[string]*regexp.Regexp {
	compiled := make(map[string]*regexp.Regexp, len(s.patterns))
	known := published()
	for pattern := range s.patterns {
		if re := known[pattern]; re != nil {
			compiled[pattern] = re
		} else if re, err := regexp.Compile(pattern); err == nil {
			compiled[pattern] = re
		}
	}
	return compiled
}

func (t *table) add(s *Set, compiled map[string]*regexp.Regexp) {
	if t.sets == nil {
		t.sets, t.entries = map[*Set]struct{}{}, map[string]*entry{}
	}
	t.sets[s] = struct{}{}
	for pattern, re := range compiled {
		e := t.entries[pattern]
		if e == nil {
			e = &entry{compiled: re, steps: s.patterns[pattern]}
			t.entries[pattern] = e
			t.steps += e.steps
		}
		e.sets++
	}
}

// remove reports whether the set was loaded.
func (t *table) remove(s *Set) bool {
	if _, ok := t.sets[s]; !ok {
		return false
	}
	s.loaded.Store(false)
	delete(t.sets, s)
	for pattern := range s.patterns {
		e := t.entries[pattern]
		if e == nil {
			continue // it does not compile
		}
		if e.sets--; e.sets == 0 {
			delete(t.entries, pattern)
			t.steps -= e.steps
		}
	}
	return true
}

// evict removes the sets that have not been used for the longest if there is too much in the table, and then a
// quarter of it, so that the next ones find room. It keeps one set.
func (t *table) evict(keep *Set) {
	if len(t.entries) <= t.maxPatterns && t.steps <= t.maxSteps {
		return
	}
	type use struct {
		set  *Set
		used int64
	}
	uses := make([]use, 0, len(t.sets))
	for s := range t.sets {
		uses = append(uses, use{s, s.used.Load()})
	}
	slices.SortFunc(uses, func(a, b use) int { return cmp.Compare(a.used, b.used) })
	for _, u := range uses {
		if len(t.entries) <= t.maxPatterns/4*3 && t.steps <= t.maxSteps/4*3 {
			return
		}
		if u.set != keep {
			t.remove(u.set)
		}
	}
}

func (t *table) publish() {
	patterns := make(map[string]*regexp.Regexp, len(t.entries))
	for pattern, e := range t.entries {
		patterns[pattern] = e.compiled
	}
	publish(patterns)
}
