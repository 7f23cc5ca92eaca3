package delta

import "github.com/levelwire/levelwire/server/internal/resource"

// recentObjects is how many objects a stream remembers, and maxRecentBytes how large one of
// them may be. maxCompared is how many labels are compared.
const (
	recentObjects  = 8
	maxRecentBytes = 256 << 10
	maxCompared    = 32
)

// Recent are the last objects that were new in a stream. Sender and receiver add the same
// ones, so that each of them can be the base of the next; the sender may leave out some. The
// zero value is empty, and has no budget.
type Recent struct {
	// Budget, if set, bounds what the objects take, which would otherwise go when they change.
	Budget Budget

	objects [recentObjects]recent
	next    int
}

// Budget bounds the bytes of objects that are held. It is safe for concurrent use.
type Budget interface {
	// TryAcquire takes some bytes, if that many are free.
	TryAcquire(n int64) bool
	// Release gives them back.
	Release(n int64)
}

type recent struct {
	Reference
	json   []byte
	labels resource.Labels
}

// Add remembers an object that is new. It keeps json, and labels, which only Like needs.
func (r *Recent) Add(ref Reference, json []byte, labels resource.Labels) {
	if len(json) > maxRecentBytes {
		return
	}
	oldest := &r.objects[r.next]
	r.next = (r.next + 1) % recentObjects
	r.release(oldest)
	if r.Budget == nil || r.Budget.TryAcquire(int64(len(json))) {
		*oldest = recent{ref, json, labels}
	}
}

// release forgets an object.
func (r *Recent) release(o *recent) {
	if r.Budget != nil && o.json != nil {
		r.Budget.Release(int64(len(o.json)))
	}
	*o = recent{}
}

// Close forgets all objects, and gives back what they took.
func (r *Recent) Close() {
	for i := range r.objects {
		r.release(&r.objects[i])
	}
}

// Find returns the JSON of an object, or nil.
func (r *Recent) Find(ref Reference) []byte {
	for i := range r.objects {
		if r.objects[i].Reference == ref {
			return r.objects[i].json
		}
	}
	return nil
}

// Like returns the object that has the most labels in common with one, the newest of
// several. The reference is zero if there is no object.
func (r *Recent) Like(labels resource.Labels) (ref Reference, json []byte) {
	best := -1
	for i := range recentObjects {
		o := &r.objects[(r.next+recentObjects-1-i)%recentObjects]
		if o.json == nil {
			continue // the receiver may have it, and its place is taken in both
		}
		if n := common(o.labels, labels); n > best {
			best, ref, json = n, o.Reference, o.json
		}
	}
	return ref, json
}

// common returns how many labels of one object another has, with the same values. Labels
// beyond maxCompared do not count.
func common(a, b resource.Labels) (n int) {
	for _, label := range a[:min(len(a), maxCompared)] {
		if value, ok := b.Lookup(label.Key); ok && value == label.Value {
			n++
		}
	}
	return n
}
