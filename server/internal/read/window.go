package read

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/processors"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Window is a part of a list, by the numbers of its objects.
type Window struct {
	Offset, Limit int
	// SortBy is name, namespace, created, changed, label:KEY or field:NAME; empty: the order of a
	// list.
	SortBy     string
	Descending bool
	// User is the name of the user that asks: users take turns to sort.
	User string
}

// Windows reads windows of lists. It remembers the order that was sorted last, so that a client
// can move in a long list. It is safe for concurrent use.
type Windows struct {
	reader *Reader
	turns  *sortTurns

	mu     sync.Mutex
	sorted map[sortedList]*sortedObjects
}

// sortedList is a list at one revision, in one order. The user is not part of it: what a list
// has does not depend on that.
type sortedList struct {
	cache            *watchcache.Cache
	revision         storage.Revision // of the latest change
	namespace, name  string
	labels, fields   string
	shard            string
	sortBy           string
	descending, past bool
}

type sortedObjects struct {
	objects  []*watchcache.Object
	revision storage.Revision // of the list that was sorted
	exact    bool             // it was asked for at that revision
	sorted   time.Time
	cost     time.Duration // that it took
	timer    *time.Timer
}

const (
	// sortedLifetime is how long an order is remembered: it keeps the objects of its time.
	sortedLifetime = 15 * time.Second
	maxSorted      = 2
)

// NewWindows returns the windows of a reader's lists.
func NewWindows(reader *Reader) *Windows {
	return &Windows{reader: reader, turns: newSortTurns(), sorted: map[sortedList]*sortedObjects{}}
}

// Read returns the window of a list, and how many objects the list has. Of the options of a
// list, limit and continue must not be set.
func (w *Windows) Read(ctx context.Context, scope Scope, opts *metav1.ListOptions, window Window) (page Page, total int, err error) {
	list, err := w.list(ctx, scope, opts, window, nil)
	if err != nil {
		return Page{}, 0, err
	}
	page = Page{Items: slices.Values(list.objects), Meta: list.meta}
	remaining := int64(max(list.total-window.Offset-len(list.objects), 0))
	page.Meta.RemainingItemCount = &remaining
	return page, list.total, nil
}

// windowList are the objects of a window of a list.
type windowList struct {
	objects  []*watchcache.Object
	total    int
	revision storage.Revision // of the list
	meta     metav1.ListMeta
}

// list reads a window. suffices says of an order that is remembered whether it may be used
// although there have been changes since; nil: none may.
func (w *Windows) list(ctx context.Context, scope Scope, opts *metav1.ListOptions, window Window, suffices func(*sortedObjects) bool) (windowList, error) {
	if opts.Limit != 0 || opts.Continue != "" {
		return windowList{}, status.BadRequest("a window has an offset and no continue token")
	}
	copied := *opts
	whole, err := w.reader.ListRetained(ctx, scope, &copied)
	if err != nil {
		return windowList{}, err
	}
	list := windowList{meta: whole.Meta}
	if list.revision, err = parseResourceVersion(whole.Meta.ResourceVersion); err != nil {
		return windowList{}, err
	}
	if window.SortBy == "" && !window.Descending {
		list.objects, list.total, err = windowOf(ctx, whole, window)
		return list, err
	}
	sorted, err := w.inOrder(ctx, scope, opts, whole, window, suffices)
	if err != nil {
		return windowList{}, err
	}
	list.total = len(sorted.objects)
	from := min(window.Offset, list.total)
	list.objects = sorted.objects[from:min(from+window.Limit, list.total)]
	if suffices != nil {
		list.revision = min(list.revision, sorted.revision)
	}
	return list, nil
}

// windowOf returns the objects of a window in the order of the list. Runs of the cache are passed
// as a whole.
func windowOf(ctx context.Context, list Page, window Window) (objects []*watchcache.Object, total int, err error) {
	take := func(o *watchcache.Object) {
		if total >= window.Offset && len(objects) < window.Limit {
			objects = append(objects, o)
		}
		total++
	}
	if list.Runs == nil {
		for o := range list.Items {
			if take(o); total%readsBetweenChecks == 0 && ctx.Err() != nil {
				return nil, 0, ctx.Err()
			}
		}
		return objects, total, nil
	}
	for run := range list.Runs {
		if total+run.Len() <= window.Offset || len(objects) == window.Limit {
			total += run.Len()
			continue
		}
		for i := range run.Len() {
			take(run.Object(i))
		}
	}
	return objects, total, nil
}

// readsBetweenChecks is how many objects are looked at before the context is.
const readsBetweenChecks = 4096

// inOrder returns all objects of a list, sorted.
func (w *Windows) inOrder(ctx context.Context, scope Scope, opts *metav1.ListOptions, list Page, window Window, suffices func(*sortedObjects) bool) (*sortedObjects, error) {
	keyOf, err := sortKey(scope.Resource, window.SortBy)
	if err != nil {
		return nil, err
	}
	cache := w.reader.config.Cache(scope.Resource.Stored())
	key := sortedList{
		cache: cache, namespace: scope.Namespace, name: scope.Name, labels: opts.LabelSelector, fields: opts.FieldSelector, shard: opts.ShardSelector,
		sortBy: window.SortBy, descending: window.Descending,
	}
	if key.revision, err = parseResourceVersion(list.Meta.ResourceVersion); err != nil {
		return nil, err
	}
	sorted := &sortedObjects{revision: key.revision, exact: opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact}
	if changed := cache.StateRevision(); changed <= key.revision {
		key.revision = changed // what other resources have changed since makes no difference
	} else {
		key.past = true
	}
	if scope.Visible == nil {
		if known := w.remembered(key, suffices); known != nil {
			return known, nil
		}
	}
	release, err := w.turns.acquire(ctx, window.User)
	if err != nil {
		return nil, err
	}
	defer release()
	if scope.Visible == nil { // most requests that come at the same time want the same order
		if known := w.remembered(key, suffices); known != nil {
			return known, nil
		}
	}
	defer processors.Computing()()
	began := time.Now()
	if sorted.objects, err = inOrderOf(ctx, list, keyOf, window.Descending); err != nil {
		return nil, err
	}
	sorted.sorted, sorted.cost = time.Now(), time.Since(began)
	if scope.Visible == nil {
		w.remember(key, sorted)
	}
	return sorted, nil
}

// inOrderOf sorts the objects of a list.
func inOrderOf(ctx context.Context, list Page, keyOf func(*watchcache.Object) string, descending bool) ([]*watchcache.Object, error) {
	type sortable struct {
		key    string
		object *watchcache.Object
	}
	var all []sortable
	for o := range list.Items {
		all = append(all, sortable{keyOf(o), o})
		if len(all)%readsBetweenChecks == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	sign := 1
	if descending {
		sign = -1
	}
	slices.SortFunc(all, func(a, b sortable) int {
		return sign * cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.object.Key, b.object.Key))
	})
	objects := make([]*watchcache.Object, len(all))
	for i := range all {
		objects[i] = all[i].object
	}
	return objects, nil
}

// remembered returns the order of a list, or of the same list at another revision if that
// suffices; nil if there is none.
func (w *Windows) remembered(key sortedList, suffices func(*sortedObjects) bool) *sortedObjects {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.sorted[key]
	for other, s := range w.sorted {
		other.revision, other.past = key.revision, key.past
		if known == nil && suffices != nil && other == key && !s.exact && suffices(s) {
			known = s
		}
	}
	if known != nil {
		known.timer.Reset(sortedLifetime)
	}
	return known
}

func (w *Windows) remember(key sortedList, added *sortedObjects) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other, known := range w.sorted {
		if len(w.sorted) < maxSorted {
			break
		}
		known.timer.Stop()
		delete(w.sorted, other)
	}
	added.timer = time.AfterFunc(sortedLifetime, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.sorted[key] == added {
			delete(w.sorted, key)
		}
	})
	w.sorted[key] = added
}

// sortKey returns the function that says by what an object is sorted, as a string.
func sortKey(res *resource.Resource, by string) (func(*watchcache.Object) string, error) {
	if key, ok := strings.CutPrefix(by, "label:"); ok {
		return func(o *watchcache.Object) string {
			value, _ := o.Attributes.Labels.Lookup(key)
			return value
		}, nil
	}
	if field, ok := strings.CutPrefix(by, "field:"); ok {
		index, known := res.Stored().FieldIndex(field)
		if !known {
			return nil, status.BadRequest("sortBy=%q: %s has no such selectable field", by, res.Plural)
		}
		return func(o *watchcache.Object) string {
			if index >= len(o.Attributes.Fields) {
				return res.Stored().LateField(o.JSON(), index)
			}
			return o.Attributes.Fields[index]
		}, nil
	}
	switch by {
	case "", "namespace":
		return func(*watchcache.Object) string { return "" }, nil // the key decides
	case "name":
		return func(o *watchcache.Object) string { return o.Attributes.Name }, nil
	case "created":
		return func(o *watchcache.Object) string { return sortableRevision(o.CreatedRevision) }, nil
	case "changed":
		return func(o *watchcache.Object) string { return sortableRevision(o.Written()) }, nil
	}
	return nil, status.BadRequest("sortBy=%q: it is name, namespace, created, changed, label:KEY or field:NAME", by)
}

// sortableRevision returns a revision as a string that sorts as the number does.
func sortableRevision(revision storage.Revision) string {
	var digits [8]byte
	for i := range digits {
		digits[i] = byte(uint64(revision) >> (56 - 8*i))
	}
	return string(digits[:])
}
