package informertest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client/informer"
)

// record is a handler that writes down its calls.
type record struct {
	e *env

	mu      sync.Mutex
	calls   []call
	changed chan struct{} // closed by the next call
	during  func(call)    // is run within each call
}

// call is one call of a handler.
type call struct {
	kind                       string // "add", "update" or "delete"
	obj, old                   *corev1.ConfigMap
	initial, finalStateUnknown bool
}

// String is "add a=1 initial", "update a=1>2", "delete a=2 unknown".
func (c call) String() string {
	s := c.kind + " " + c.obj.Name + "="
	if c.old != nil {
		s += c.old.Data["value"] + ">"
	}
	s += c.obj.Data["value"]
	if c.initial {
		s += " initial"
	}
	if c.finalStateUnknown {
		s += " unknown"
	}
	return s
}

// handle adds a record to the informer.
func (e *env) handle(opts informer.HandlerOptions, during func(call)) (*record, *informer.Registration) {
	e.Helper()
	r := &record{e: e, changed: make(chan struct{}), during: during}
	registration, err := e.informer.AddHandler(r, opts)
	e.must(err)
	return r, registration
}

func (r *record) note(c call) {
	if r.during != nil {
		r.during(c)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	close(r.changed)
	r.changed = make(chan struct{})
}

// OnAdd implements informer.Handler.
func (r *record) OnAdd(obj *corev1.ConfigMap, initial bool) {
	r.note(call{kind: "add", obj: obj, initial: initial})
}

// OnUpdate implements informer.Handler.
func (r *record) OnUpdate(old, obj *corev1.ConfigMap) {
	r.note(call{kind: "update", old: old, obj: obj})
}

// OnDelete implements informer.Handler.
func (r *record) OnDelete(obj *corev1.ConfigMap, finalStateUnknown bool) {
	r.note(call{kind: "delete", obj: obj, finalStateUnknown: finalStateUnknown})
}

// said returns the calls so far.
func (r *record) said() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// until waits until the calls are as wanted, and returns them.
func (r *record) until(what string, enough func([]call) bool) []call {
	r.e.Helper()
	for {
		r.mu.Lock()
		calls, changed := slices.Clone(r.calls), r.changed
		r.mu.Unlock()
		if enough(calls) {
			return calls
		}
		select {
		case <-changed:
		case <-r.e.ctx.Done():
			r.e.Fatalf("waited in vain for %s; got %v", what, calls)
		}
	}
}

// awaitCall waits for a call.
func (r *record) awaitCall(want string) {
	r.e.Helper()
	r.until(want, func(calls []call) bool {
		return slices.ContainsFunc(calls, func(c call) bool { return c.String() == want })
	})
}

// is waits until there are as many calls as wanted, and compares. Objects that
// were there come in any order: sorted compares without order.
func (r *record) is(want ...string) {
	r.e.Helper()
	calls := r.until(strings.Join(want, ", "), func(calls []call) bool { return len(calls) >= len(want) })
	if got := said(calls); !slices.Equal(got, want) {
		r.e.Errorf("got %q, want %q", got, want)
	}
}

func (r *record) sorted(want ...string) {
	r.e.Helper()
	calls := r.until(strings.Join(want, ", "), func(calls []call) bool { return len(calls) >= len(want) })
	got := said(calls)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.e.Errorf("got %q, want %q", got, want)
	}
}

func said(calls []call) []string {
	var said []string
	for _, c := range calls {
		said = append(said, fmt.Sprint(c))
	}
	return said
}

// marked waits until everything written before was delivered: it creates an
// object and waits for it.
func (r *record) marked(name string) {
	r.e.Helper()
	r.e.create(name, "mark")
	r.until(name, func(calls []call) bool {
		return slices.ContainsFunc(calls, func(c call) bool { return c.obj.Name == name })
	})
}

// about returns the calls about one object.
func about(calls []call, name string) []call {
	return slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return c.obj.Name != name })
}
