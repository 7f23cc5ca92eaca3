package patterntable

import (
	"fmt"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/validate"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// patterns returns n patterns of a size each, whose names begin with first.
func patterns(first, n, size int) map[string]int {
	list := map[string]int{}
	for i := range n {
		list[fmt.Sprintf("^p%d$", first+i)] = size
	}
	return list
}

// TestTheLibraryHasThisTable: the library uses what is put into its table, and what it adds is taken out again. The test
// fails if the library's variables get another name.
func TestTheLibraryHasThisTable(t *testing.T) {
	defer Trim()
	Trim()
	if validate.Pattern("path", "body", "x", "^added by the library$") == nil || published()["^added by the library$"] == nil {
		t.Fatalf("the library keeps its patterns elsewhere: %v", published())
	}
	set := New(map[string]int{"^loaded$": 10, "[": 10})
	set.Load()
	if n := len(published()); n != 1 || published()["^loaded$"] == nil {
		t.Errorf("%d patterns are in the table, want the one that is loaded", n)
	}
	before := published()["^loaded$"]
	if err := validate.Pattern("path", "body", "loaded", "^loaded$"); err != nil || published()["^loaded$"] != before || len(published()) != 1 {
		t.Errorf("the library does not use what is loaded: %v, %v", err, published())
	}
	validate.Pattern("path", "body", "x", "^default$")
	Trim()
	if n := len(published()); n != 1 {
		t.Errorf("%d patterns are in the table after it was trimmed, want 1", n)
	}
	set.Forget()
	if n := len(published()); n != 0 {
		t.Errorf("%d patterns are in the table after the set was forgotten, want none", n)
	}
}

// TestPatternsOfAllSchemas: those that are kept are bounded, whatever definitions come and go, and each set can be
// loaded; what is used stays.
func TestPatternsOfAllSchemas(t *testing.T) {
	defer Trim()
	small := table{maxPatterns: 1000, maxSteps: 10_000}
	often := small.newSet(patterns(0, 10, 10))
	for i := range 100 {
		often.Load()
		set := small.newSet(patterns(1000+100*i, 100, 10))
		set.Load()
		if !often.loaded.Load() || !set.loaded.Load() {
			t.Fatalf("round %d: the set that is used often is loaded: %v, the last: %v", i, often.loaded.Load(), set.loaded.Load())
		}
		if n := len(published()); n > 1000 || n < 110 || n != len(small.entries) {
			t.Fatalf("round %d: %d patterns are kept, want %d, at most 1000", i, n, len(small.entries))
		}
	}
	large := small.newSet(patterns(0, 20, 500)) // half of them known
	large.Load()
	if !large.loaded.Load() || small.steps > 10_000 {
		t.Errorf("a large set is loaded: %v, with %d steps in all, want at most 10000", large.loaded.Load(), small.steps)
	}
}

// TestSharedPatterns: a pattern stays until the last set that has it is gone.
func TestSharedPatterns(t *testing.T) {
	defer Trim()
	both := table{maxPatterns: 100, maxSteps: 10_000}
	a, b := both.newSet(patterns(0, 20, 10)), both.newSet(patterns(10, 20, 10))
	a.Load()
	b.Load()
	for i, step := range []struct {
		set  *Set
		want int
	}{{a, 20}, {a, 20}, {b, 0}} {
		step.set.Forget()
		if n := len(published()); n != step.want || both.steps != 10*step.want {
			t.Errorf("step %d: %d patterns with %d steps are kept, want %d", i, n, both.steps, step.want)
		}
	}
}

// TestConcurrentSets: sets are loaded, validated with and forgotten at once.
func TestConcurrentSets(t *testing.T) {
	defer Trim()
	small := table{maxPatterns: 50, maxSteps: 10_000}
	done := make(chan error)
	for g := range 4 {
		go func() {
			var failed error
			for i := range 200 {
				set := small.newSet(patterns(10*(i%10), 20, 10))
				set.Load()
				pattern := fmt.Sprintf("^p%d$", 10*(i%10))
				if err := validate.Pattern("path", "body", pattern[1:len(pattern)-1], pattern); err != nil {
					failed = err
				}
				if (i+g)%2 == 0 {
					set.Forget()
				}
			}
			done <- failed
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	small.trim()
	if n := len(published()); n > 50 {
		t.Errorf("%d patterns are kept, want at most 50", n)
	}
}
