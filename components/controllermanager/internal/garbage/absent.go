package garbage

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// absentFor is for how long the server is not asked again about an owner that is gone. An
	// object never comes back under its uid, unless a backup is restored, which takes longer.
	absentFor = time.Second
	maxAbsent = 1000
)

// owner is what an owner reference names.
type owner struct {
	resource        schema.GroupVersionResource
	namespace, name string
	uid             types.UID
}

// absent are owners that the server has said are gone: it is asked once a second, and not
// by each of the objects that an owner leaves behind. The zero value is ready to use, and safe for
// concurrent use.
type absent struct {
	mu    sync.Mutex
	since map[owner]time.Time
}

func (a *absent) has(o owner) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, ok := a.since[o]
	return ok && time.Since(since) < absentFor
}

func (a *absent) add(o owner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since == nil || len(a.since) >= maxAbsent {
		a.since = map[owner]time.Time{}
	}
	a.since[o] = time.Now()
}
