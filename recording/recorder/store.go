package recorder

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/recording"
)

// follower is the reflector.Store of one resource, in all namespaces or in one. It
// remembers no objects, but which there are.
type follower struct {
	ctx       context.Context // of the recording, which ends all followers
	recorder  *recorder
	id        int // of the resource in the recording
	resource  recording.Resource
	namespace string
	source    *source
	stop      context.CancelFunc // of its reflector
	known     map[string]known
	replaced  bool
	cut       bool // its watch is not open
}

// known is what a follower knows of an object.
type known struct{ revision, created int64 }

// name says what is followed.
func (f *follower) name() string {
	if f.namespace != "" {
		return f.resource.String() + " in " + f.namespace
	}
	return f.resource.String()
}

// Add implements reflector.Store.
func (f *follower) Add(o *object) error { return f.set(o) }

// Update implements reflector.Store.
func (f *follower) Update(o *object) error { return f.set(o) }

// Delete implements reflector.Store.
func (f *follower) Delete(o *object) error {
	revision, err := o.revision()
	if err != nil {
		return err
	}
	return f.send(f.gone(o.key(), revision))
}

func (f *follower) set(o *object) error {
	e, err := f.changed(o)
	if err != nil {
		return err
	}
	return f.send(e)
}

// changed notes the new state of an object.
func (f *follower) changed(o *object) (recording.Entry, error) {
	revision, err := o.revision()
	if err != nil {
		return recording.Entry{}, err
	}
	created := revision
	if before, ok := f.known[o.key()]; ok {
		created = before.created
	}
	f.known[o.key()] = known{revision, created}
	return recording.Entry{
		Type: recording.Set, Resource: f.id, Time: time.Now(), Revision: revision, Created: created,
		Key: o.key(), Value: f.value(o),
	}, nil
}

func (f *follower) gone(key string, revision int64) recording.Entry {
	delete(f.known, key)
	return recording.Entry{Type: recording.Delete, Resource: f.id, Time: time.Now(), Revision: revision, Key: key}
}

func (f *follower) value(o *object) []byte {
	group := schema.GroupVersion{Group: f.resource.Group, Version: f.resource.Version}
	return o.value(f.resource.Kind, group.String())
}

// Replace implements reflector.Store: the state at the start, or what a list showed
// after the server could not resume the watch.
func (f *follower) Replace(list []*object, version string) error {
	revision, err := parseVersion(version)
	if err != nil {
		return err
	}
	if f.source.anyState {
		if err := f.checkSameStore(revision); err != nil {
			return err
		}
	}
	f.source.exact, f.source.anyState = "", false
	first := !f.replaced
	f.replaced = true
	if first {
		if begun, err := f.begin(list, revision); begun || err != nil {
			return err
		}
	}
	entries := []recording.Entry{{Type: recording.Gap, Resource: f.id, Time: time.Now(), Revision: revision}}
	there := make(map[string]bool, len(list))
	for _, o := range list {
		there[o.key()] = true
		if o.ResourceVersion == fmt.Sprint(f.known[o.key()].revision) {
			continue
		}
		e, err := f.changed(o)
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	for key := range f.known {
		if !there[key] {
			entries = append(entries, f.gone(key, revision))
		}
	}
	slices.SortStableFunc(entries, func(a, b recording.Entry) int { return cmp.Compare(a.Revision, b.Revision) })
	return f.send(entries...)
}

// begin hands the state at the start to the loop and waits until the loop has those of
// all resources. It returns false if the loop has gone on without this one.
func (f *follower) begin(list []*object, revision int64) (bool, error) {
	state := make([]recording.Object, 0, len(list))
	for _, o := range list {
		at, err := o.revision()
		if err != nil {
			return false, err
		}
		state = append(state, recording.Object{Resource: f.id, Revision: at, Created: 1, Key: o.key(), Value: f.value(o)})
	}
	taken := make(chan bool, 1)
	if err := f.recorder.tell(f.ctx, message{from: f, state: state, revision: revision, taken: taken}); err != nil {
		return false, err
	}
	select {
	case ok := <-taken:
		if !ok {
			return false, nil
		}
	case <-f.ctx.Done():
		return false, f.ctx.Err()
	}
	for i := range state {
		f.known[state[i].Key] = known{state[i].Revision, 1}
	}
	select {
	case <-f.recorder.started:
		return true, nil
	case <-f.ctx.Done():
		return false, f.ctx.Err()
	}
}

// checkSameStore fails if a version that was listed is none of the versions that the
// other resources have now: a server may keep some resources in another etcd.
func (f *follower) checkSameStore(revision int64) error {
	_, now, err := f.recorder.currentVersion(f.ctx)
	if err != nil {
		return nil //nolint:nilerr // Then it stays unknown.
	}
	if revision < f.recorder.base || revision > now {
		return fmt.Errorf("its versions (%d) are not those of the other resources (%d to %d): the server keeps it in another store", revision, f.recorder.base, now)
	}
	return nil
}

func (f *follower) send(entries ...recording.Entry) error {
	return f.recorder.tell(f.ctx, message{from: f, entries: entries})
}
