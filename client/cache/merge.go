package cache

// Merge applies a diff relative to State, and has the effect of Replace or
// ReplaceNamespace with the whole result. dropped are objects of State that do
// not exist any more, or not in this state; changed are objects that exist and
// are not in State. Merge queues each of changed as Replaced, and a tombstone
// for each of dropped whose key is not in changed. Objects in neither cost
// nothing. version is the resourceVersion of the result; for a namespace it is
// set by Reached.
//
// An error is that of the KeyFunc; then Merge has changed nothing.
func (f *DeltaFIFO[T]) Merge(namespace string, dropped, changed []T, version string) error {
	droppedKeys, err := f.keysOf(dropped)
	if err != nil {
		return err
	}
	return f.supersede(scopeOf(namespace), changed, func(present map[string]struct{}) {
		for _, key := range droppedKeys {
			if _, ok := present[key]; ok {
				continue
			}
			if last, ok := f.newest(key); ok {
				f.drop(key, last)
			}
		}
		if namespace == "" {
			f.listed(version)
		}
	})
}

// Get returns the state of an object that everything queued so far leads to: what is
// known, as the changes in the queue will have left it. obj is any state of the object.
// It returns false if the object is deleted, or never was, or if the KeyFunc fails.
func (f *DeltaFIFO[T]) Get(obj T) (newest T, exists bool) {
	key, err := f.keyOf(obj)
	if err != nil {
		return newest, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest(key)
}

// newest returns the state of an object that everything queued leads to; false
// if it is deleted, or never was. It needs f.mu.
func (f *DeltaFIFO[T]) newest(key string) (obj T, ok bool) {
	p := f.items[key]
	if p == nil && f.current != nil && f.current.key == key {
		p = f.current
	}
	if p != nil {
		last := p.deltas.Newest()
		return last.Object, last.Type != Deleted
	}
	if f.known == nil {
		return obj, false
	}
	return f.known.Get(key)
}
