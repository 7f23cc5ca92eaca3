package policy

import (
	"fmt"
	"strings"
	"testing"
)

// TestManyAnnotations: each param of a policy may have a value of its own. When each was compared with each, these took an
// hour, beyond the time of all tests of the package.
func TestManyAnnotations(t *testing.T) {
	const many = 500_000
	begin := strings.Repeat("x", 200)
	published := newAnnotations()
	for range 2 {
		for i := range many {
			published.add("key", fmt.Sprintf("%s%06d", begin, i))
		}
		published.add("key", "")
		published.add("other", "a")
	}
	if n, other := len(published.values["key"]), len(published.values["other"]); n != many || other != 1 {
		t.Errorf("%d and %d values", n, other)
	}
}
