package controller

import "sync"

// wakes knows which keys were added during their call, and since they were put off: what they
// were added for is then not in what the call required. The zero value is ready for use.
type wakes[K comparable] struct {
	mu    sync.Mutex // handlers hold it, so nothing is called with it
	woken map[K]bool // of the keys that are reconciled or put off
}

// add notes that a key was added. The queue has it only later.
func (w *wakes[K]) add(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.woken[key]; ok {
		w.woken[key] = true
	}
}

// begin reports whether a key was added since it was put off, and begins its call.
func (w *wakes[K]) begin(key K) (woken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.woken == nil {
		w.woken = map[K]bool{}
	}
	woken = w.woken[key]
	w.woken[key] = false
	return woken
}

// clear forgets that a key was added: what it was added for is required.
func (w *wakes[K]) clear(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.woken[key]; ok { // its call may have ended, and have left its context
		w.woken[key] = false
	}
}

// end forgets a key whose call was not put off.
func (w *wakes[K]) end(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.woken, key)
}
