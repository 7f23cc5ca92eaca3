package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/internal/contain"
	"github.com/levelwire/levelwire/client/internal/pagetoken"
	"github.com/levelwire/levelwire/client/reflector"
)

// ConsistencyCheckOptions has an informer compare its cache with the server from
// time to time, and correct it: a lost event would otherwise be wrong for ever.
type ConsistencyCheckOptions[T client.Object] struct {
	// Interval is the time between two comparisons, varied by a tenth. At least
	// a second.
	Interval time.Duration
	// List lists the metadata of what the informer selects.
	List func(ctx context.Context, opts metav1.ListOptions) (*client.List[*metav1.PartialObjectMetadata], error)
	// Get reads one object.
	Get func(ctx context.Context, namespace, name string) (T, error)
}

// ConsistencyCheckStats is what comparisons with the server found.
type ConsistencyCheckStats struct {
	Rounds    int64 // comparisons completed
	Abandoned int64 // given up: the server failed, a list came in between, or the version was not reached in time
	// Missing, Changed and Extra count objects that were corrected: those that
	// the cache lacked, had in another state, or had and the server had not.
	Missing, Changed, Extra int64
}

// SetConsistencyCheck has the informer compare and correct its cache; a Factory
// with Options.ConsistencyCheckInterval does it.
// It must be called before the start.
//
// A round lists names and resourceVersions in pages, waits until the cache has
// reached the resourceVersion of that list, and compares. Objects with an event
// since the round began are left to their events, so it never goes back behind
// them. What differs is read and goes the way of all changes, so handlers are
// called.
func (i *SharedInformer[T]) SetConsistencyCheck(opts ConsistencyCheckOptions[T]) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase != idle {
		return fmt.Errorf("informer %s: a consistency check must be set before the start", i.name)
	}
	if err := i.checkWith(opts); err != nil {
		return fmt.Errorf("informer %s: %w", i.name, err)
	}
	return nil
}

func (i *SharedInformer[T]) checkWith(opts ConsistencyCheckOptions[T]) error {
	switch {
	case opts.Interval < time.Second:
		return fmt.Errorf("the interval of consistency checks, %v, is below a second", opts.Interval)
	case opts.List == nil || opts.Get == nil:
		return errors.New("ConsistencyCheckOptions.List and ConsistencyCheckOptions.Get are both needed")
	}
	i.consistencyChecker = &consistencyChecker[T]{informer: i, opts: opts, seed: maphash.MakeSeed(),
		maxObjects: cmp.Or(i.opts.MaxObjects, reflector.DefaultMaxObjects)}
	return nil
}

const (
	// digestPage is the limit of a page of names and versions.
	digestPage = 1000
	// digestPatience is how long the cache may take to reach the digest's
	// version; bookmarks come about once a minute.
	digestPatience = 3 * time.Minute
	// maxCorrections bounds the objects that one round reads, and those that it drops; the next
	// goes on.
	maxCorrections = 1000
)

// consistencyChecker is the goroutine that compares, and what the reflector's
// goroutine records for it.
type consistencyChecker[T client.Object] struct {
	informer *SharedInformer[T]
	opts     ConsistencyCheckOptions[T]
	seed     maphash.Seed
	// maxObjects is how many a digest may have; not positive: no bound.
	maxObjects int

	// mu makes queueing a change and recording it one step. It is taken before
	// the DeltaFIFO's.
	mu       sync.Mutex
	touched  map[string]struct{} // keys with events since the round began; nil: none is under way
	replaced bool                // a list came in between
	counts   ConsistencyCheckStats
}

func (r *consistencyChecker[T]) stats() ConsistencyCheckStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// run compares until ctx ends.
func (r *consistencyChecker[T]) run(ctx context.Context) {
	if r.informer.waitForSync(ctx) != nil {
		return
	}
	for {
		timer := time.NewTimer(time.Duration(float64(r.opts.Interval) * (0.9 + 0.2*rand.Float64())))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		for r.round(ctx) {
		}
	}
}

// round reports whether it has corrected as much as a round may and more is left.
func (r *consistencyChecker[T]) round(ctx context.Context) (more bool) {
	r.watchKeys()
	defer r.forgetKeys()
	found, err := r.compare(ctx)
	corrected := 0
	if err == nil {
		corrected, err = r.correct(ctx, found)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.counts.Abandoned++
		if ctx.Err() == nil {
			r.informer.log.Info("comparison with the server abandoned", "error", err)
		}
		return false
	}
	r.counts.Rounds++
	if corrected > 0 {
		r.informer.log.Warn("the cache differed from the server and was corrected", "objects", corrected)
	}
	return corrected > 0 && (len(found.differ.held) > maxCorrections || found.differ.more() || found.moreExtra)
}

func (r *consistencyChecker[T]) watchKeys() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.touched, r.replaced = map[string]struct{}{}, false
}

func (r *consistencyChecker[T]) forgetKeys() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.touched = nil
}

// noting notes that there is an event for obj and queues it. A nil consistencyChecker
// only queues.
func (r *consistencyChecker[T]) noting(obj T, queue func(T) error) error {
	if r == nil {
		return queue(obj)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.touch(obj)
	return queue(obj)
}

// notingIf is noting if may returns true; nothing is corrected in between.
func (r *consistencyChecker[T]) notingIf(may func() bool, obj T, queue func(T) error) error {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
	}
	if !may() {
		return nil
	}
	if r != nil {
		r.touch(obj)
	}
	return queue(obj)
}

// touch needs mu.
func (r *consistencyChecker[T]) touch(obj T) {
	if r.touched != nil {
		r.touched[cache.ObjectKey(obj.GetNamespace(), obj.GetName())] = struct{}{}
	}
}

// notingList is noting for a list, or for the question for a difference, which
// ends the round.
func (r *consistencyChecker[T]) notingList() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replaced = true
}

// untouched calls queue unless there is an event for key since the round
// began, or a list, or one is under way.
func (r *consistencyChecker[T]) untouched(key string, queue func() error) (done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, touched := r.touched[key]
	if _, listing := r.informer.listing(); listing || touched || r.replaced {
		return false, nil
	}
	return true, queue()
}

// difference is what the server has otherwise than the cache.
type difference struct {
	differ    candidates
	extra     []string // keys that the server does not have, maxCorrections at most
	moreExtra bool     // there are others
	// asOf is the version at which the server did not have them; "" if versions cannot be compared.
	asOf string
}

// compare lists, waits until the cache is as far, and compares. Of
// objects that agree it holds a hash of the key only.
func (r *consistencyChecker[T]) compare(ctx context.Context) (d difference, err error) {
	digest, err := r.digest(ctx, func(key, version string) {
		if obj, ok := r.informer.indexer.Get(key); !ok || obj.GetResourceVersion() != version {
			d.differ.add(key, version)
		}
	})
	if err != nil {
		return d, err
	}
	d.asOf = digest.first
	limited, cancel := context.WithTimeout(ctx, digestPatience)
	defer cancel()
	if err := r.informer.WaitForResourceVersion(limited, digest.last); err != nil {
		return d, err
	}
	// What an earlier round has corrected, and is queued, does not differ.
	if err := r.informer.awaitPosition(limited, r.informer.fifo.Position()); err != nil {
		return d, err
	}
	d.differ.drop(func(c candidate) bool {
		obj, ok := r.informer.indexer.Get(c.key)
		return ok && obj.GetResourceVersion() == c.version
	})
	r.informer.indexer.Range(func(key string, _ T) bool {
		if _, ok := digest.seen[maphash.String(r.seed, key)]; ok {
			return true
		}
		if d.moreExtra = len(d.extra) == maxCorrections; !d.moreExtra {
			d.extra = append(d.extra, key)
		}
		return !d.moreExtra
	})
	return d, nil
}

// digest is what was read of the server's names and versions.
type digest struct {
	seen map[uint64]struct{} // hashes of the keys
	// first and last are the earliest and the latest version of its lists.
	first, last string
	count       int // of objects; a page counts as a tenth of digestPage at least
}

// digest calls visit for every object of one consistent list, or of one for each namespace.
func (r *consistencyChecker[T]) digest(ctx context.Context, visit func(key, version string)) (d digest, err error) {
	d.seen = map[uint64]struct{}{}
	opts := metav1.ListOptions{Limit: digestPage}
	var tokens pagetoken.Cycle
	for {
		var page *client.List[*metav1.PartialObjectMetadata]
		var err error
		if panicked := contain.Call("ConsistencyCheckOptions.List", func() { page, err = r.opts.List(ctx, opts) }); panicked != nil {
			err = panicked
		}
		if err == nil && page == nil {
			err = errors.New("ConsistencyCheckOptions.List has returned nil")
		}
		if err != nil {
			return d, fmt.Errorf("list of metadata: %w", err)
		}
		if err := r.add(&d, page, visit); err != nil {
			return d, err
		}
		if page.Continue == "" {
			return d, nil
		}
		if tokens.Closes(page.Continue) {
			return d, errors.New("the server gave the same continue token twice")
		}
		opts.Continue = page.Continue
	}
}

// add adds a page. One that repeats an object, or a token, was sent in the place of another one, and an object
// without a name may be any: what is missing in their place would be taken for deleted. A
// server that has always another page would fill the memory.
func (r *consistencyChecker[T]) add(d *digest, page *client.List[*metav1.PartialObjectMetadata], visit func(key, version string)) error {
	if page.ResourceVersion == "" {
		return errors.New("a page of the list of metadata has no resourceVersion")
	}
	if d.last == "" {
		d.first = page.ResourceVersion
	}
	d.first, d.last = least(d.first, page.ResourceVersion), latest(d.last, page.ResourceVersion)
	if d.count += max(len(page.Items), digestPage/10); r.maxObjects > 0 && d.count > r.maxObjects && page.Continue != "" {
		return fmt.Errorf("the list of metadata goes on after %d objects: raise Options.MaxObjects of the reflector if there are so many", r.maxObjects)
	}
	for _, item := range page.Items {
		if item == nil || item.Name == "" {
			return errors.New("an object in the list of metadata has no name")
		}
		key := cache.ObjectKey(item.Namespace, item.Name)
		hash := maphash.String(r.seed, key)
		if _, twice := d.seen[hash]; twice {
			return fmt.Errorf("%s is in the list of metadata twice", key)
		}
		d.seen[hash] = struct{}{}
		visit(key, item.ResourceVersion)
	}
	return nil
}

// correct queues what differs, unless an event for the object has come
// meanwhile.
func (r *consistencyChecker[T]) correct(ctx context.Context, d difference) (corrected int, err error) {
	for _, key := range d.extra {
		buried := false
		_, err := r.untouched(key, func() (err error) {
			if last, ok := r.informer.indexer.Get(key); ok {
				r.informer.absent(last, d.asOf)
			}
			buried, err = r.informer.fifo.QueueTombstone(key)
			return err
		})
		if err != nil {
			return corrected, err
		}
		if buried {
			corrected++
			r.count(func(s *ConsistencyCheckStats) { s.Extra++ })
		}
	}
	for _, c := range d.differ.some(maxCorrections) {
		done, err := r.correctOne(ctx, c.key, c.version)
		if err != nil {
			return corrected, err
		}
		if done {
			corrected++
		}
	}
	return corrected, nil
}

// correctOne reads one object. Only the state that the digest saw is used: if
// there is another by now, its event follows.
func (r *consistencyChecker[T]) correctOne(ctx context.Context, key, version string) (done bool, err error) {
	namespace, name, err := cache.SplitObjectKey(key)
	if err != nil {
		return false, err
	}
	if done, _ := r.untouched(key, func() error { return nil }); !done {
		return false, nil
	}
	var obj T
	if panicked := contain.Call("ConsistencyCheckOptions.Get", func() { obj, err = r.opts.Get(ctx, namespace, name) }); panicked != nil {
		err = panicked
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err == nil {
		err = checkAnswer(obj, namespace, name)
	}
	if err != nil {
		return false, fmt.Errorf("get %s: %w", key, err)
	}
	if obj.GetResourceVersion() != version {
		return false, nil
	}
	_, had := r.informer.indexer.Get(key)
	done, err = r.untouched(key, func() error {
		return ended(r.informer.fifo.Update(r.informer.transformed(obj)))
	})
	if done && err == nil {
		r.count(func(s *ConsistencyCheckStats) {
			if had {
				s.Changed++
			} else {
				s.Missing++
			}
		})
	}
	return done, err
}

// checkAnswer refuses what cannot be the object that was asked for.
func checkAnswer[T client.Object](obj T, namespace, name string) error {
	switch {
	case isNil(obj):
		return errors.New("ConsistencyCheckOptions.Get has returned nil")
	case obj.GetNamespace() != namespace || obj.GetName() != name:
		return fmt.Errorf("the answer is %q in namespace %q", obj.GetName(), obj.GetNamespace())
	}
	return nil
}

func (r *consistencyChecker[T]) count(f func(*ConsistencyCheckStats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.counts)
}
