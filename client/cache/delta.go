package cache

// DeltaType says how an object has changed.
type DeltaType string

// The types of deltas.
const (
	Added    DeltaType = "Added"
	Updated  DeltaType = "Updated"
	Deleted  DeltaType = "Deleted"
	Replaced DeltaType = "Replaced" // its state in a new list; it may not have changed
	Sync     DeltaType = "Sync"     // its state again, because of a Resync
)

// Delta is one change of one object.
type Delta[T any] struct {
	Type DeltaType
	// Object is the state after the change; for Deleted the last state.
	Object T
	// FinalStateUnknown is set on a Deleted that was inferred: the object was
	// missing from a new list, so Object is the last state that was seen and
	// not necessarily the last one there was.
	FinalStateUnknown bool
}

// Deltas are the changes of one object, oldest first.
type Deltas[T any] []Delta[T]

// Newest returns the last change. It panics if there is none; an Item from a
// DeltaFIFO always has one.
func (d Deltas[T]) Newest() Delta[T] { return d[len(d)-1] }

// Item is what DeltaFIFO.Pop hands out: one object and everything that
// happened to it since it was last handed out.
type Item[T any] struct {
	Key string
	// Deltas belongs to the DeltaFIFO and is reused after the process function
	// returns.
	Deltas Deltas[T]
	// Initial is set for the objects of the first Replace.
	Initial bool
	// Compressed is set if there were more changes than Deltas shows, see
	// FIFOOptions.MaxDeltas.
	Compressed bool
}
