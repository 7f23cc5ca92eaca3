package relay

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/server/internal/apiserver"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// source feeds the cache of one resource: a reflector writes what the upstream sends, at
// the upstream's revisions. It is a storage.Reader of that resource.
type source struct {
	relay      *Relay
	res        *resource.Resource
	custom     bool // only the upstream knows its columns
	cache      *watchcache.Cache
	endpoint   client.Resource[*object]
	running    context.Context // ends when the source is dropped
	stop       context.CancelFunc
	current    coalesced[storage.Revision] // asks which version is current
	unanswered refusals                    // of these questions
	progress   progress
	silence    silence
	stream     stream
	past       past
	gaps       gaps
	warnings   warnings
	aging      aging
	refusals   refusals // of streams, and of lists that fill the cache

	withoutDeltas atomic.Bool // in the next watch
	unwatched     atomic.Bool // the last list was not followed by a stream yet

	lists    atomic.Int64 // that are passed on because the cache is behind
	users    atomic.Int64 // requests under way
	lastUsed atomic.Int64 // in Unix nanoseconds

	broken   chan struct{} // closed when the resource cannot be cached any more
	breaking sync.Once

	// applying is held by the writer of the cache, the reflector, and by requests for
	// progress. It guards the fields below.
	applying sync.Mutex
	position storage.Revision // of the reflector
	complete storage.Revision // the cache has what is left of all changes up to here
	epoch    int              // grows with each list
	follows  *watchcache.Progress

	verifying atomic.Bool // a goroutine finds out whether the cache has everything
	// listed is when the last list or difference was asked for that
	// shows the most recent state, in Unix nanoseconds.
	listed atomic.Int64
}

// newSource makes a source, which start is to be called of. The relay runs.
func (r *Relay) newSource(res *resource.Resource) *source {
	_, custom := res.New().(*unstructured.Unstructured)
	s := &source{relay: r, res: res, custom: custom, cache: watchcache.New(res, r.opts.Cache), broken: make(chan struct{}), follows: new(watchcache.Progress)}
	s.cache.Follow(s.follows)
	s.endpoint = client.ForResource(r.client, res.GroupVersionResource(), func() *object { return &object{} })
	s.stream.contact = &r.contact
	s.running, s.stop = context.WithCancel(r.running)
	return s
}

// start begins to feed the cache. The relay's lock is held.
func (s *source) start() {
	r := s.relay
	r.counts.made.Add(1)
	if s.custom {
		running := r.running
		r.definitions.begin.Do(func() { r.wait.Go(func() { r.definitions.follow(running) }) })
	}
	r.wait.Go(func() {
		defer r.opts.Cache.Budget.Leave(s.cache)
		defer s.cache.Close() // which ends the watches of clients
		if err := s.run(); err != nil {
			s.breakUp(err)
		}
	})
}

// run feeds the cache until the source is dropped, or cannot be cached.
func (s *source) run() error {
	if s.custom {
		s.relay.definitions.await(s.running)
	}
	refl, err := reflector.New(reflector.ListerWatcher[*object](upstreamResource{s}), reflector.Store[*object](s), reflector.Options{
		Name: s.res.GroupResource().String(), Logger: s.relay.opts.Logger, OnError: s.failed, OnProgress: s.reached,
		ResumeFrom: s.fillFromPast(),
		// Servers compress lists, but not the streams that take their place: bytes count here.
		PagedList: s.relay.opts.Deltas,
		// All clients of the relay wait for this one: it asks more often than a single
		// informer would.
		Backoff: reflector.Backoff{Base: 200 * time.Millisecond, Max: 3 * time.Second},
	})
	if err != nil {
		return err
	}
	return refl.Run(s.running)
}

func (s *source) acquire() { s.users.Add(1) }

func (s *source) release() {
	s.lastUsed.Store(time.Now().UnixNano())
	s.users.Add(-1)
}

// idleSince returns for how long no request has used the cache.
func (s *source) idleSince(now time.Time) time.Duration {
	if s.users.Load() > 0 {
		return 0
	}
	return now.Sub(time.Unix(0, s.lastUsed.Load()))
}

func (s *source) isBroken() bool {
	select {
	case <-s.broken:
		return true
	default:
		return false
	}
}

// breakUp drops the source: requests are passed on for a while.
func (s *source) breakUp(why error) {
	s.breaking.Do(func() {
		close(s.broken)
		r := s.relay
		r.opts.Logger.Warn("a resource of the upstream cannot be cached any more: its watches end, and requests are passed on",
			"resource", s.res.GroupVersionResource(), "error", why, "for", refusedLong)
		r.counts.broken.Add(1)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refuse(s.res.GroupVersionResource(), refusedLong)
		r.drop(s)
	})
}

// errNotServed reports that the upstream does not have the resource any more.
var errNotServed = errors.New("the upstream does not serve the resource any more")

// failed is called with each error that the reflector recovers from.
func (s *source) failed(_ string, err error) {
	switch {
	case apierrors.IsNotFound(err): // of a group that it does not have, kube-apiserver says so without a Status
		s.confirmGone()
	case !client.IsStatus(err):
	case isRefusal(err):
		s.streamRefused(err) // otherwise the reflector tries again
	case apierrors.IsMethodNotSupported(err), apierrors.IsNotAcceptable(err), apierrors.IsUnsupportedMediaType(err):
		s.breakUp(err)
	}
}

// confirmGone drops the source if the upstream's discovery says, too, that there is no such resource. The reflector would believe it
// after a minute, and relays in a row one after another; until then consistent lists would fail.
func (s *source) confirmGone() {
	ctx, cancel := context.WithTimeout(s.running, time.Second)
	defer cancel()
	if served, err := s.endpoint.Served(ctx); err == nil && !served {
		s.breakUp(errNotServed)
	}
}

// reached is called with each resourceVersion that the cache has surely reached.
func (s *source) reached(version string) {
	revision, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return // a list of that version has failed
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	s.position = storage.Revision(revision)
	s.follows.Publish(s.position)
}

// decode makes an object of the cache.
func (s *source) decode(o *object) (*watchcache.Object, error) {
	json, revision, err := s.res.Received(o.json)
	if err != nil {
		return nil, err
	}
	attributes, err := s.res.Attributes(json)
	if err != nil {
		return nil, err
	}
	return watchcache.NewObject(s.res.Key(attributes.Namespace, attributes.Name), storage.Revision(revision), attributes, json)
}

// Add implements reflector.Store.
func (s *source) Add(o *object) error { return s.write(o, false) }

// Update implements reflector.Store.
func (s *source) Update(o *object) error { return s.write(o, false) }

// Delete implements reflector.Store.
func (s *source) Delete(o *object) error { return s.write(o, true) }

func (s *source) write(o *object, deleted bool) error {
	change, err := s.changeOf(o, deleted)
	if err != nil {
		return err
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	return s.apply(change)
}

func (s *source) changeOf(o *object, deleted bool) (change watchcache.Change, err error) {
	object, err := s.decode(o)
	if err != nil {
		return change, err
	}
	change = watchcache.Change{Key: object.Key, Object: object, Revision: object.Revision}
	if deleted || !s.keeps(object) { // it may have taken the place of one that is kept
		change.Object = nil
	}
	return change, nil
}

// apply applies a change, unless nothing is left of it. The upstream brings the changes of one
// version one by one: etcd deletes all Events of an expired lease in one. The lock is held.
func (s *source) apply(change watchcache.Change) error {
	state, reached := s.cache.StateRevision(), s.cache.Reached()
	switch {
	case change.Revision != state && (change.Revision < s.complete || change.Revision == s.complete && change.Object != nil):
		return nil // a deletion of what is held is of the version after: see eventlog.Entry.Carried
	case change.Revision >= state && change.Revision < reached:
		return s.tooLate(change)
	}
	held, _ := s.cache.Tree().Get(change.Key)
	if o := change.Object; o != nil && held != nil && held.Attributes.UID != o.Attributes.UID && max(state, reached) < o.Revision-1 {
		// The object was deleted and made anew, which the upstream has sent as one change.
		s.cache.Apply([]watchcache.Change{{Key: change.Key, Revision: o.Revision - 1}, change})
	} else {
		s.cache.ApplyNext(change)
	}
	if change.Object == nil {
		if held, _ := s.cache.Tree().Get(change.Key); held != nil && held.Revision <= change.Revision {
			return fmt.Errorf("%s was deleted at version %d, which the upstream has used before: such versions cannot be relayed", change.Key, change.Revision)
		}
	}
	s.follows.Publish(change.Revision)
	return nil
}

// tooLate returns an error for a change that comes when watchers have been told a later version,
// unless the cache has it. The lock is held.
func (s *source) tooLate(change watchcache.Change) error {
	held, exists := s.cache.Tree().Get(change.Key)
	if change.Object == nil && !exists || change.Object != nil && exists && held.Revision >= change.Revision {
		return nil
	}
	return fmt.Errorf("%s has changed at version %d, after the upstream had said that nothing changes up to %d: such versions cannot be relayed", change.Key, change.Revision, s.cache.Reached())
}

// Replace implements reflector.Store. The list is empty, and has no version, if the
// resource is gone.
func (s *source) Replace(list []*object, version string) error {
	objects := make([]*watchcache.Object, 0, len(list))
	for _, o := range list {
		object, err := s.decode(o)
		if err != nil {
			return err
		}
		if s.keeps(object) {
			objects = append(objects, object)
		}
	}
	return s.fill(objects, version)
}

// Held implements reflector.Holder. Nothing but names and versions is asked of what is held.
func (s *source) Held() []*object {
	tree := s.cache.Tree()
	list := make([]*object, 0, tree.Len())
	for _, o := range tree.Range("", "") {
		list = append(list, &object{ObjectMeta: metav1.ObjectMeta{
			Name: o.Attributes.Name, Namespace: o.Attributes.Namespace, ResourceVersion: strconv.FormatInt(int64(o.Revision), 10),
		}})
	}
	return list
}

// Merge implements reflector.Holder.
func (s *source) Merge(dropped, received []*object, version string) error {
	gone := make(map[string]bool, len(dropped))
	for _, o := range dropped {
		gone[s.res.Key(o.Namespace, o.Name)] = true
	}
	tree := s.cache.Tree()
	objects := make([]*watchcache.Object, 0, tree.Len()+len(received))
	for key, o := range tree.Range("", "") {
		if !gone[key] {
			objects = append(objects, o)
		}
	}
	for _, o := range received {
		object, err := s.decode(o)
		if err != nil {
			return err
		}
		if s.keeps(object) {
			objects = append(objects, object)
		}
	}
	return s.fill(objects, version)
}

// fill makes the cache hold exactly the objects. What has changed since the last list
// reaches watchers as changes, unless the upstream has gone back: then they end with 410.
func (s *source) fill(objects []*watchcache.Object, version string) error {
	if version == "" {
		return errNotServed
	}
	number, err := strconv.ParseInt(version, 10, 64)
	if err != nil || number <= 0 {
		return fmt.Errorf("the upstream's list has the resourceVersion %q, which is not a number from 1 on that fits 63 bits", version)
	}
	revision := storage.Revision(number)
	slices.SortFunc(objects, func(a, b *watchcache.Object) int { return cmp.Compare(a.Key, b.Key) })
	s.applying.Lock()
	defer s.applying.Unlock()
	s.epoch++
	rewound := s.cache.IsReady() && (revision < s.position || revision >= s.cache.Reached() && s.showsFormerStates(objects))
	switch {
	case rewound:
		s.relay.opts.Logger.Warn("the upstream has gone back in time, as after the restore of a backup: all watches start over",
			"resource", s.res.GroupVersionResource(), "was", s.position, "is", revision)
		s.relay.counts.rewound.Add(1)
		s.complete = 0
		if revision < s.cache.Reached() { // otherwise the former state would be shown at the version until there is another
			s.follows.Restart(revision)
		}
		s.gaps.reset()
	case s.cache.IsReady() && revision < s.cache.Reached():
		s.position = revision
		return nil // what has been asked for progress has brought the cache further
	}
	if s.cache.IsReady() && !rewound {
		s.gaps.note(s.cache.Reached(), revision)
	}
	if !rewound {
		tree := s.cache.Tree()
		for i, o := range objects {
			if held, ok := tree.Get(o.Key); ok && held.Revision == o.Revision {
				objects[i] = held
			}
		}
	}
	s.cache.Compress(objects)
	if _, err := s.cache.Refill(objects, revision, rewound); err != nil {
		return err
	}
	s.position = revision
	s.follows.Publish(revision)
	if listed := s.listed.Load(); listed > 0 {
		s.stream.filled(time.Unix(0, listed))
	}
	s.cache.Open()
	s.relay.counts.lists.Add(1)
	return nil
}

// showsFormerStates reports whether a list has an object as it was at a version that the cache
// has passed, and that the cache does not have like that. Restored snapshots of etcd are like that:
// their current version is far ahead, and objects keep those that they had. To watchers that
// have come further, such a version would be one of what has been lost. The lock is held.
func (s *source) showsFormerStates(objects []*watchcache.Object) bool {
	tree, reached := s.cache.Tree(), s.cache.Reached()
	return slices.ContainsFunc(objects, func(o *watchcache.Object) bool {
		if o.Revision > reached {
			return false
		}
		held, ok := tree.Get(o.Key)
		return !ok || held.Revision != o.Revision
	})
}

// prepareVersion gets the cache ready for the resourceVersion of a request.
func (s *source) prepareVersion(ctx context.Context, req *http.Request, verb string) error {
	query := req.URL.Query()
	text := query.Get("resourceVersion")
	revision, err := strconv.ParseInt(text, 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return apiserver.ErrNotCached // it may be a version that this relay cannot count to
	}
	if verb == request.VerbWatch && asksHowFar(req) {
		if err := s.prepareHowFar(ctx); err != nil {
			return err
		}
	}
	if text == "" && verb == request.VerbWatch {
		at, err := s.prepareCurrent(ctx)
		apiserver.SetBeginning(ctx, at)
		return err
	}
	if err != nil || revision <= 0 {
		return nil // no version, or one that is refused
	}
	at := storage.Revision(revision)
	switch {
	case verb != request.VerbWatch:
		return s.prepareState(ctx, at)
	case query.Get("sendInitialEvents") == "true":
		if err := s.prepareState(ctx, at); errors.Is(err, apiserver.ErrNotCached) {
			return err
		}
		return nil // that the version is not there yet, the stream says
	}
	if at < s.cache.Oldest() {
		s.relay.counts.olderWatches.Add(1)
		return apiserver.ErrNotCached // the upstream may have more history
	}
	return s.prepareWatch(ctx, at)
}

// prepareState gets the cache ready for a read of a state that is not older than a version. The read itself waits for that if the
// upstream is known to say how far the stream is.
func (s *source) prepareState(ctx context.Context, at storage.Revision) error {
	if _, hears := s.silence.is(); hears {
		s.requestProgress(at)
		return nil
	}
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	return s.mustReach(ctx, at, s.relay.opts.Cache.FreshnessWait)
}

// Get implements storage.Reader. Nothing reads single keys of a relay's store.
func (s *source) Get(context.Context, string, storage.Revision) (storage.KeyValue, error) {
	return storage.KeyValue{}, apiserver.ErrNotCached
}

// List implements storage.Reader: what the cache has evicted, only the upstream may have.
func (s *source) List(context.Context, string, storage.ListOptions) (storage.Page, error) {
	return storage.Page{}, apiserver.ErrNotCached
}

// upstreamResource is the ListerWatcher of a source.
type upstreamResource struct{ source *source }

// List implements reflector.ListerWatcher.
func (u upstreamResource) List(ctx context.Context, opts metav1.ListOptions) (*client.List[*object], error) {
	if opts.ResourceVersion == "0" {
		// At any version servers ignore the limit, and nothing says how old the list is.
		opts.ResourceVersion = ""
	}
	if opts.Continue == "" && opts.ResourceVersion == "" {
		u.source.listed.Store(u.source.relay.contact.now().UnixNano())
	}
	list, err := u.source.endpoint.List(u.source.warnings.noting(ctx), u.source.ofShard(opts))
	if err == nil {
		u.source.unwatched.Store(true)
	}
	return list, err
}

// Watch implements reflector.ListerWatcher.
func (u upstreamResource) Watch(ctx context.Context, opts metav1.ListOptions) (reflector.Stream[*object], error) {
	asked := u.source.relay.contact.now()
	ctx, arrivals := u.source.relay.follow(ctx)
	name := rand.Text() // which no other client can know
	stream, err := u.source.watch(namingWatch(ctx, name), opts)
	if err != nil {
		return nil, err
	}
	u.source.unwatched.Store(false)
	u.source.refusals.end()
	u.source.unanswered.end()
	u.source.progress.follow(name)
	u.source.opened(asked, arrivals, stream.coalesced)
	return watched{stream, u.source}, nil
}

// watch opens a watch of the upstream.
func (s *source) watch(ctx context.Context, opts metav1.ListOptions) (*eventStream, error) {
	var coalesced, deltas bool
	w, err := s.endpoint.Watch(context.WithValue(s.withDeltas(s.warnings.noting(ctx), &deltas), coalescedKey{}, &coalesced), s.ofShard(opts))
	if err != nil {
		return nil, err
	}
	return &eventStream{watch: w, source: s, coalesced: coalesced, deltas: deltas}, nil
}

// Difference implements reflector.Differ.
func (u upstreamResource) Difference(ctx context.Context, held []*object, opts metav1.ListOptions) (*client.Difference[*object], error) {
	u.source.listed.Store(u.source.relay.contact.now().UnixNano())
	return u.source.endpoint.Difference(u.source.warnings.noting(ctx), held, u.source.ofShard(opts))
}

// Served implements reflector.Discoverer.
func (u upstreamResource) Served(ctx context.Context) (bool, error) {
	return u.source.endpoint.Served(ctx)
}

// watched is a stream that notes when it ends.
type watched struct {
	stream *eventStream
	source *source
}

// Next implements reflector.Stream.
func (w watched) Next() (client.WatchEvent[*object], error) {
	event, err := w.stream.next()
	if err != nil {
		w.source.stream.ended()
	}
	return event, err
}

// Close implements reflector.Stream.
func (w watched) Close() {
	w.stream.watch.Close()
	w.source.stream.ended()
}
