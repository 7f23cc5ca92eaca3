package garbage

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// object is what the graph knows of one object.
type object struct {
	resource        schema.GroupVersionResource
	namespace, name string
	uid             types.UID
	version         string // the resource version
	owners          []metav1.OwnerReference
	deleting        bool
	foreground      bool // has the finalizer that waits for dependents
	orphan          bool // has the finalizer that lets dependents go
}

// node is an object with its dependents. A node may stand for an owner that
// has not been seen: only its uid and its dependents are known then.
type node struct {
	object     object
	seen       bool
	dependents map[types.UID]bool // with whether they block its deletion in the foreground
	blocking   int                // of the dependents
	// told is when its dependents were last queued because it waits for them.
	told time.Time
}

// link notes a dependent, and whether it blocks the owner.
func (n *node) link(dependent types.UID, blocks bool) {
	if before := n.dependents[dependent]; before && !blocks {
		n.blocking--
	} else if !before && blocks {
		n.blocking++
	}
	n.dependents[dependent] = blocks
}

// tellAgain is after what time the dependents of an owner that waits for them are queued again, should one have been
// missed: each that comes or changes is queued anyway.
const tellAgain = 10 * time.Second

// graph is safe for concurrent use.
type graph struct {
	mu    sync.Mutex
	nodes map[types.UID]*node
}

func newGraph() *graph { return &graph{nodes: map[types.UID]*node{}} }

func describe(resource schema.GroupVersionResource, obj *metav1.PartialObjectMetadata) object {
	return object{
		resource: resource, namespace: obj.Namespace, name: obj.Name, uid: obj.UID, version: obj.ResourceVersion,
		owners:     obj.OwnerReferences,
		deleting:   obj.DeletionTimestamp != nil,
		foreground: slices.Contains(obj.Finalizers, metav1.FinalizerDeleteDependents),
		orphan:     slices.Contains(obj.Finalizers, metav1.FinalizerOrphanDependents),
	}
}

// put records an object's present state and returns the owners whose
// dependents it has left, or whose dependents' state it changed.
func (g *graph) put(o object) (affected []types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.node(o.uid)
	var now sets.Set[types.UID]
	if len(n.object.owners) > 0 {
		now = uidsOf(o.owners)
	}
	for _, ref := range n.object.owners {
		if !now.Has(ref.UID) {
			g.unlink(ref.UID, o.uid)
			affected = append(affected, ref.UID)
		} else if owner := g.nodes[ref.UID]; owner != nil {
			owner.link(o.uid, false) // until its present references are read
		}
	}
	for _, ref := range o.owners {
		owner := g.node(ref.UID)
		owner.link(o.uid, owner.dependents[o.uid] || ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion)
		affected = append(affected, ref.UID)
	}
	n.object, n.seen = o, true
	return affected
}

// uidsOf returns the uids of owners: an object may have tens of thousands.
func uidsOf(owners []metav1.OwnerReference) sets.Set[types.UID] {
	uids := make(sets.Set[types.UID], len(owners))
	for i := range owners {
		uids.Insert(owners[i].UID)
	}
	return uids
}

// remove forgets an object and returns the dependents it leaves behind and
// the owners that may have waited for it.
func (g *graph) remove(uid types.UID) (dependents, owners []types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil {
		return nil, nil
	}
	for dependent := range n.dependents {
		dependents = append(dependents, dependent)
	}
	for _, ref := range n.object.owners {
		g.unlink(ref.UID, uid)
		owners = append(owners, ref.UID)
	}
	n.object, n.seen, n.told = object{}, false, time.Time{}
	g.dropIfEmpty(uid, n)
	return dependents, owners
}

// get returns what is known of an object.
func (g *graph) get(uid types.UID) (object, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil || !n.seen {
		return object{}, false
	}
	return n.object, true
}

// dependents returns the known dependents of an object.
func (g *graph) dependents(uid types.UID) []object {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil {
		return nil
	}
	var found []object
	for dependent := range n.dependents {
		if d := g.nodes[dependent]; d != nil && d.seen {
			found = append(found, d.object)
		}
	}
	return found
}

// hasDependents reports whether an object has known dependents.
func (g *graph) hasDependents(uid types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	return n != nil && len(n.dependents) > 0
}

// hasWaitingDependents reports whether an object has dependents that are being deleted and wait for their own.
func (g *graph) hasWaitingDependents(uid types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil {
		return false
	}
	for dependent := range n.dependents {
		if d := g.nodes[dependent]; d != nil && d.seen && stateOf(d.object) == ownerWaits {
			return true
		}
	}
	return false
}

// blocked reports whether dependents block the deletion of an owner that waits for them. It also returns those that
// have to be looked at because it does, but not again before tellAgain: an owner is looked at when each of its
// dependents goes.
func (g *graph) blocked(uid types.UID) (blocked bool, tell []types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil {
		return false, nil
	}
	if n.told.IsZero() || time.Since(n.told) >= tellAgain {
		n.told = time.Now()
		for dependent := range n.dependents {
			if d := g.nodes[dependent]; d != nil && d.seen && !d.object.deleting {
				tell = append(tell, dependent)
			}
		}
	}
	return n.blocking > 0, tell
}

// of returns the uids of the seen objects of some resources.
func (g *graph) of(wanted func(schema.GroupVersionResource) bool) []types.UID {
	g.mu.Lock()
	defer g.mu.Unlock()
	var found []types.UID
	for uid, n := range g.nodes {
		if n.seen && wanted(n.object.resource) {
			found = append(found, uid)
		}
	}
	return found
}

func (g *graph) node(uid types.UID) *node {
	n := g.nodes[uid]
	if n == nil {
		n = &node{dependents: map[types.UID]bool{}}
		g.nodes[uid] = n
	}
	return n
}

func (g *graph) unlink(owner, dependent types.UID) {
	if n := g.nodes[owner]; n != nil {
		n.link(dependent, false)
		delete(n.dependents, dependent)
		g.dropIfEmpty(owner, n)
	}
}

func (g *graph) dropIfEmpty(uid types.UID, n *node) {
	if !n.seen && len(n.dependents) == 0 {
		delete(g.nodes, uid)
	}
}
