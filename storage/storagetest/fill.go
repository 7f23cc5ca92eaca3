package storagetest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/levelwire/levelwire/storage"
)

// fill creates prefix00000, prefix00001 and so on with several writers, and
// returns the revision of each.
func (s *session) fill(prefix string, count int) []storage.Revision {
	s.Helper()
	const writers = 16
	revs := make([]storage.Revision, count)
	errs := make([]error, writers)
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= count || errs[w] != nil {
					return
				}
				revs[i], errs[w] = s.Create(s.ctx, fmt.Sprintf("%s%05d", prefix, i), fmt.Appendf(nil, "value %d", i), 0)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			s.Fatalf("filling %s: %v", prefix, err)
		}
	}
	return revs
}
