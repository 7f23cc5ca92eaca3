package customresource

import (
	"fmt"
	"testing"
)

// TestPatternsOfAllSchemas: those that the library keeps are bounded, whatever definitions come and go; known ones may
// be used again.
func TestPatternsOfAllSchemas(t *testing.T) {
	var used patternSet
	of := func(first, n, size int) map[string]int {
		patterns := map[string]int{}
		for i := range n {
			patterns[fmt.Sprint(first+i)] = size
		}
		return patterns
	}
	refused := 0
	for i := range 100 {
		if used.add(of(1000*i, 1000, 10)) != nil {
			refused++
		}
	}
	if refused != 70 {
		t.Errorf("%d of 100 schemas with 1,000 patterns each were refused, want 70", refused)
	}
	if err := used.add(of(0, 1000, 10)); err != nil {
		t.Errorf("known patterns are refused: %v", err)
	}
	var large patternSet
	if large.add(of(0, 10, maxUsedSteps/10)) != nil || large.add(of(100, 1, 1)) == nil {
		t.Error("the steps of patterns are not bounded")
	}
}
