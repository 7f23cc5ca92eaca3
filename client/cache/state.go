package cache

// State returns the objects that everything queued so far leads to: what is
// known, as the changes in the queue will have left it, in no order. A namespace
// limits it to one of FIFOOptions.Namespaces; "" is everything.
func (f *DeltaFIFO[T]) State(namespace string) []T {
	of := scopeOf(namespace)
	f.mu.Lock()
	defer f.mu.Unlock()
	var objs []T
	newest := func(p *pending[T]) {
		if last := p.deltas.Newest(); last.Type != Deleted && of.has(p.key) {
			objs = append(objs, last.Object)
		}
	}
	for p := f.head; p != nil; p = p.next {
		newest(p)
	}
	if c := f.current; c != nil && f.items[c.key] == nil {
		newest(c)
	}
	if f.known == nil {
		return objs
	}
	f.known.Range(func(key string, obj T) bool {
		if of.has(key) && f.items[key] == nil && (f.current == nil || f.current.key != key) {
			objs = append(objs, obj)
		}
		return true
	})
	return objs
}
