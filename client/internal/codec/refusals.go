package codec

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// refusalLifetime is how long a refusal is believed: the resource may be served by
// another server by then, or the server may have been upgraded.
const refusalLifetime = 10 * time.Minute

// Refusals remembers for which resources a server refuses protobuf. The zero value
// is ready, and safe for concurrent use. There are as many entries as resources at
// most.
type Refusals struct {
	mu             sync.RWMutex
	bodies, accept map[schema.GroupVersionResource]time.Time // when they end
}

// RefuseBody notes that the server does not read protobuf for a resource (415), and
// returns whether that is news.
func (r *Refusals) RefuseBody(gvr schema.GroupVersionResource) bool { return r.refuse(&r.bodies, gvr) }

// RefuseAccept notes that the server does not answer a request that accepts protobuf
// (406), and returns whether that is news.
func (r *Refusals) RefuseAccept(gvr schema.GroupVersionResource) bool {
	return r.refuse(&r.accept, gvr)
}

func (r *Refusals) refuse(of *map[schema.GroupVersionResource]time.Time, gvr schema.GroupVersionResource) bool {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if *of == nil {
		*of = map[schema.GroupVersionResource]time.Time{}
	}
	news := !now.Before((*of)[gvr])
	(*of)[gvr] = now.Add(refusalLifetime)
	return news
}

// Refused returns whether a body in protobuf is refused, and whether an answer in
// protobuf is.
func (r *Refusals) Refused(gvr schema.GroupVersionResource) (body, accept bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.bodies) == 0 && len(r.accept) == 0 {
		return false, false
	}
	now := time.Now()
	return now.Before(r.bodies[gvr]), now.Before(r.accept[gvr])
}

// Resources returns what is refused at present, sorted.
func (r *Refusals) Resources() []schema.GroupVersionResource {
	now := time.Now()
	r.mu.RLock()
	defer r.mu.RUnlock()
	var all []schema.GroupVersionResource
	for _, of := range []map[schema.GroupVersionResource]time.Time{r.bodies, r.accept} {
		for gvr, end := range of {
			if now.Before(end) && !slices.Contains(all, gvr) {
				all = append(all, gvr)
			}
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionResource) int { return cmp.Compare(a.String(), b.String()) })
	return all
}
