package customresource

import (
	"fmt"
	"sync"
)

// maxUsedPatterns and maxUsedSteps bound the patterns that the library keeps until the process ends.
const (
	maxUsedPatterns = 30_000
	maxUsedSteps    = 6_000_000 // 240 MB
)

// patternSet are the patterns that the library has been given since the process began. It is safe for concurrent use.
type patternSet struct {
	mu    sync.Mutex
	known map[string]struct{}
	steps int
}

var usedPatterns patternSet

// add returns an error, and adds nothing, if the patterns are too many with those before them.
func (s *patternSet) add(patterns map[string]int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh, steps := 0, 0
	for pattern, size := range patterns {
		if _, ok := s.known[pattern]; !ok {
			fresh++
			steps += size
		}
	}
	if len(s.known)+fresh > maxUsedPatterns || s.steps+steps > maxUsedSteps {
		return fmt.Errorf("it has %d patterns that no schema has had since the server was started, and the patterns of all schemas take too much memory: restart the server, or use fewer", fresh)
	}
	if s.known == nil {
		s.known = map[string]struct{}{}
	}
	for pattern := range patterns {
		s.known[pattern] = struct{}{}
	}
	s.steps += steps
	return nil
}
