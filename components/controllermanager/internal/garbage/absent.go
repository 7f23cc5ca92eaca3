package garbage

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// absentFor is for how long the server is not asked again about an owner that is gone. An
	// object never comes back under its uid, unless a backup is restored, which takes longer.
	absentFor = time.Second
	// maxAbsent bounds the memory, together with that references are kept as hashes: names and uids in references may
	// take a megabyte each.
	maxAbsent = 2 * maxAsked
)

// owner is what an owner reference names.
type owner struct {
	resource        schema.GroupVersionResource
	namespace, name string
	uid             types.UID
}

type ownerHash [sha256.Size]byte

func (o owner) hash() ownerHash {
	written, _ := json.Marshal([]string{o.resource.Group, o.resource.Version, o.resource.Resource, o.namespace, o.name, string(o.uid)})
	return sha256.Sum256(written)
}

// absent are owners that the server has said are gone: it is asked once a second, and not
// by each of the objects that an owner leaves behind. The zero value is ready to use, and safe for
// concurrent use.
type absent struct {
	mu sync.Mutex
	// since is for the owners that were added last, and before for as many that were added before them.
	since, before map[ownerHash]time.Time
}

func (a *absent) has(o owner) bool {
	key := o.hash()
	a.mu.Lock()
	defer a.mu.Unlock()
	since, ok := a.since[key]
	if !ok {
		since, ok = a.before[key]
	}
	return ok && time.Since(since) < absentFor
}

func (a *absent) add(o owner) {
	key := o.hash()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since == nil || len(a.since) >= maxAbsent {
		a.since, a.before = map[ownerHash]time.Time{}, a.since
	}
	a.since[key] = time.Now()
}
