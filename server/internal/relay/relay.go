package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server/internal/aggregation"
	"github.com/levelwire/levelwire/server/internal/apiserver"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/shard"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Options are the options of a Relay.
type Options struct {
	// Config is how the upstream is reached, and the credentials of the relay there.
	// Required.
	Config *rest.Config
	// Builtin are the kinds whose columns, fields and protobuf are known. Required.
	Builtin *resource.Table
	// Cache are the options of each cache.
	Cache watchcache.Options
	// IdleTimeout is for how long a cache is kept without a request or an open watch.
	// Default 30 min.
	IdleTimeout time.Duration
	// FillTimeout is how long a request waits for the first fill of a cache. Default 30 s.
	FillTimeout time.Duration
	// ProbeInterval is how often the upstream is asked whether it still answers, which
	// bounds how exactly the age of the caches is known. Default 1 s.
	ProbeInterval time.Duration
	// MaxStaleness is how old caches may be while the relay is ready. Default 1 min.
	MaxStaleness time.Duration
	// Shard is the part of each collection that the relay keeps; nil: the whole. Lists and
	// watches of anything else are passed on.
	Shard *shard.Selector
	// Deltas has the relay ask for changes as differences from what it has, which a
	// Levelwire upstream sends, and fill caches by lists, which most upstreams compress: it
	// saves bytes and costs processor time.
	Deltas bool
	// Logger receives what operators should see. Default: slog.Default().
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	if o.Cache.FreshnessWait <= 0 {
		o.Cache.FreshnessWait = freshnessWait
	}
	for _, d := range []struct {
		of    *time.Duration
		value time.Duration
	}{{&o.IdleTimeout, 30 * time.Minute}, {&o.FillTimeout, 30 * time.Second}, {&o.ProbeInterval, time.Second}, {&o.MaxStaleness, time.Minute}} {
		if *d.of <= 0 {
			*d.of = d.value
		}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// freshnessWait is how long reads wait for a version: kube-apiserver says only after one or
// two seconds how far a stream is.
const freshnessWait = 5 * time.Second

// Relay has the caches of one upstream, each made when its resource is first listed or
// watched, and dropped when it has not been used for long. It implements
// apiserver.Upstream. It is safe for concurrent use.
type Relay struct {
	opts       Options
	client     *client.Client // of the reflectors, and of what the relay itself asks
	base       *url.URL
	transports [aggregation.Upgrade + 1]http.RoundTripper
	kinds      kinds
	documents  documents
	// definitions is begun with the first source of a custom resource.
	definitions definitions
	contact     contact
	outage      outage
	counts      counts
	// lateBookmarks: the upstream ends a watch of a second without a bookmark.
	lateBookmarks atomic.Bool
	promisedGrace time.Duration

	running context.Context // ends when Run does; nil before
	wait    sync.WaitGroup  // of the sources

	mu         sync.Mutex // guards sources, refused and running
	sources    map[schema.GroupVersionResource]*source
	refused    map[schema.GroupVersionResource]time.Time // that cannot be cached, until when that is believed
	byResource atomic.Pointer[map[*resource.Resource]*source]
}

// New returns a Relay. It asks the upstream nothing yet.
func New(opts Options) (*Relay, error) {
	opts.setDefaults()
	r := &Relay{opts: opts, promisedGrace: promisedGrace, sources: map[schema.GroupVersionResource]*source{}, refused: map[schema.GroupVersionResource]time.Time{}}
	r.byResource.Store(&map[*resource.Resource]*source{})
	r.documents.relay, r.documents.held = r, map[documentKey]*document{}
	r.documents.downloads = make(chan struct{}, maxDownloads)
	r.definitions.relay, r.definitions.listed = r, make(chan struct{})
	r.contact.now, r.contact.made, r.contact.begun = time.Now, make(chan struct{}), time.Now()
	var err error
	if r.client, err = client.New(opts.Config, client.Options{Logger: opts.Logger, Retry: client.RetryOptions{Max: -1}, WrapTransport: func(complete http.RoundTripper) http.RoundTripper {
		return followsArrivals{notesWarnings{watchHistory{asksForRetained{asksForProgress{asksForDeltas{complete}}}}}}
	}}); err != nil {
		return nil, err
	}
	if r.base, err = r.baseURL(); err != nil {
		return nil, err
	}
	if err := r.connect(); err != nil {
		return nil, err
	}
	r.kinds = kinds{client: r.client, builtin: opts.Builtin}
	return r, nil
}

// Run feeds the caches until ctx ends.
func (r *Relay) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer r.wait.Wait()
	defer cancel()
	r.mu.Lock()
	r.running = ctx
	r.mu.Unlock()
	r.wait.Go(func() { r.probe(ctx) })
	ticker := time.NewTicker(min(r.opts.IdleTimeout, time.Minute))
	defer ticker.Stop()
	aging := time.NewTicker(agingInterval)
	defer aging.Stop()
	for {
		select {
		case <-ctx.Done():
			r.mu.Lock()
			r.running = nil
			r.mu.Unlock()
			return
		case now := <-ticker.C:
			r.dropIdle(now)
		case <-aging.C:
			r.ageVersions()
		}
	}
}

// lifetime returns the context of what is asked for all clients: it ends when Run does.
func (r *Relay) lifetime() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		return ended
	}
	return r.running
}

// MayAnswer implements apiserver.Upstream. A get of the most recent state costs the
// upstream no more than to find out whether the cache has it, so it is passed on.
func (r *Relay) MayAnswer(req *http.Request, path request.Path, verb string) bool {
	if path.Subresource != "" {
		return false
	}
	query := req.URL.Query()
	if query.Has("levelwireVisible") {
		return false // the relay does not know the roles and bindings
	}
	switch verb {
	case request.VerbList, request.VerbWatch:
		return true
	case request.VerbGet:
		return query.Get("resourceVersion") != "" && r.lookup(path) != nil
	}
	return false
}

func gvrOf(path request.Path) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: path.Group, Version: path.Version, Resource: path.Plural}
}

// lookup returns the source of a path, or nil.
func (r *Relay) lookup(path request.Path) *source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sources[gvrOf(path)]
}

// Prepare implements apiserver.Upstream.
func (r *Relay) Prepare(ctx context.Context, req *http.Request, path request.Path, verb string) (*resource.Resource, func(), error) {
	if verb != request.VerbGet && !r.coversShard(req.URL.Query()) {
		return nil, nil, apiserver.ErrNotCached
	}
	if s := r.lookup(path); isExact(req.URL.Query(), verb) && (s == nil || !s.cache.IsReady()) {
		return nil, nil, apiserver.ErrNotCached // a cache that is filled now would not have the version
	}
	s, err := r.use(ctx, gvrOf(path))
	if err != nil {
		return nil, nil, err
	}
	if verb == request.VerbWatch {
		s.past.want(req.URL.Query())
	}
	if err := r.prepare(ctx, s, req, verb); err != nil {
		s.release()
		return nil, nil, err
	}
	return s.res, s.release, nil
}

// isExact reports whether a request lists the state at one version.
func isExact(query url.Values, verb string) bool {
	version, match := query.Get("resourceVersion"), query.Get("resourceVersionMatch")
	limited := query.Get("limit") != "" && query.Get("limit") != "0"
	return verb == request.VerbList && (query.Get("continue") != "" ||
		version != "" && version != "0" && (match == string(metav1.ResourceVersionMatchExact) || match == "" && limited))
}

func (r *Relay) prepare(ctx context.Context, s *source, req *http.Request, verb string) error {
	if !s.canShow(req) {
		return apiserver.ErrNotCached
	}
	ctx, cancel := context.WithTimeout(ctx, r.opts.FillTimeout)
	defer cancel()
	select {
	case <-s.cache.Ready():
	case <-s.broken:
		return apiserver.ErrNotCached
	case <-ctx.Done():
		return status.TooManyRequests(fmt.Sprintf("the relay has not received all %s from the upstream yet: try again", s.res.GroupResource()), 1)
	}
	if s.isBroken() {
		return apiserver.ErrNotCached
	}
	err := s.prepareVersion(ctx, req, verb)
	if errors.Is(err, context.DeadlineExceeded) {
		return status.TooManyRequests(fmt.Sprintf("the relay does not know yet whether it has the %s that were asked for: try again", s.res.GroupResource()), 1)
	}
	return err
}

// use returns the source of a resource, which is made if there is none. It is kept until
// release has been called.
func (r *Relay) use(ctx context.Context, gvr schema.GroupVersionResource) (*source, error) {
	r.mu.Lock()
	s, until := r.sources[gvr], r.refused[gvr]
	if s != nil {
		s.acquire()
	}
	r.mu.Unlock()
	switch {
	case s != nil:
		return s, nil
	case time.Now().Before(until), !isName(gvr):
		return nil, apiserver.ErrNotCached
	}
	res, err := r.kinds.find(ctx, gvr)
	if err != nil {
		r.opts.Logger.Debug("the upstream could not be asked what it serves: passing the request on", "resource", gvr, "error", err)
		return nil, apiserver.ErrNotCached
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if res == nil {
		r.refuse(gvr, refusedBriefly)
		return nil, apiserver.ErrNotCached
	}
	if r.running == nil {
		return nil, status.ShuttingDown()
	}
	if s = r.sources[gvr]; s == nil {
		s = r.newSource(res)
		s.start()
		r.sources[gvr] = s
		r.publish()
	}
	s.acquire()
	return s, nil
}

const (
	// refusedBriefly is how long a resource that the upstream does not serve, or not with
	// list and watch, is believed to be like that.
	refusedBriefly = time.Second
	// refusedLong is the same for one that the upstream has refused to send.
	refusedLong = 10 * time.Second
	// maxRefused bounds how many resources are known to be like that.
	maxRefused = 1000
)

// refuse remembers that a resource cannot be cached now. The lock is held.
func (r *Relay) refuse(gvr schema.GroupVersionResource, d time.Duration) {
	now := time.Now()
	if len(r.refused) >= maxRefused {
		maps.DeleteFunc(r.refused, func(_ schema.GroupVersionResource, until time.Time) bool { return now.After(until) })
	}
	if len(r.refused) < maxRefused {
		r.refused[gvr] = now.Add(d)
	}
}

// publish makes the sources visible to readers. The lock is held.
func (r *Relay) publish() {
	byResource := make(map[*resource.Resource]*source, len(r.sources))
	for _, s := range r.sources {
		byResource[s.res] = s
	}
	r.byResource.Store(&byResource)
}

// drop ends a source: its watchers end, and new requests make another one, after a time
// if it is refused. The lock is held.
func (r *Relay) drop(s *source) {
	gvr := s.res.GroupVersionResource()
	if r.sources[gvr] != s {
		return
	}
	delete(r.sources, gvr)
	r.publish()
	s.stop()
}

// dropIdle drops the caches that have not been used for long.
func (r *Relay) dropIdle(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sources {
		if s.idleSince(now) >= r.opts.IdleTimeout {
			r.opts.Logger.Info("dropping a cache that is not used", "resource", s.res.GroupVersionResource())
			r.counts.dropped.Add(1)
			r.drop(s)
		}
	}
}

// Lookup implements apiserver.Resources.
func (r *Relay) Lookup(group, version, plural string) *resource.Resource {
	if s := r.lookup(request.Path{Group: group, Version: version, Plural: plural}); s != nil {
		return s.res
	}
	return nil
}

// All implements apiserver.Resources: the resources whose caches have been filled.
func (r *Relay) All() []*resource.Resource {
	var list []*resource.Resource
	for res, s := range *r.byResource.Load() {
		if s.cache.IsReady() {
			list = append(list, res)
		}
	}
	slices.SortFunc(list, func(a, b *resource.Resource) int {
		return strings.Compare(a.GroupVersionResource().String(), b.GroupVersionResource().String())
	})
	return list
}

// Cache returns the cache of a resource, or nil.
func (r *Relay) Cache(res *resource.Resource) *watchcache.Cache {
	if s := (*r.byResource.Load())[res]; s != nil {
		return s.cache
	}
	return nil
}

// StoreOf returns what is behind a cache.
func (r *Relay) StoreOf(res *resource.Resource) storage.Reader {
	if s := (*r.byResource.Load())[res]; s != nil {
		return s
	}
	return dropped{}
}

// dropped is what is behind a cache that has been dropped.
type dropped struct{}

// Get implements storage.Reader.
func (dropped) Get(context.Context, string, storage.Revision) (storage.KeyValue, error) {
	return storage.KeyValue{}, apiserver.ErrNotCached
}

// List implements storage.Reader.
func (dropped) List(context.Context, string, storage.ListOptions) (storage.Page, error) {
	return storage.Page{}, apiserver.ErrNotCached
}

// Current implements storage.Reader.
func (dropped) Current(context.Context) (storage.Revision, error) {
	return 0, apiserver.ErrNotCached
}

// canShow reports whether the cache can be shown as a request asks for: a table of a kind
// whose columns only the upstream knows, and a field that only the upstream knows to
// select by, it cannot.
func (s *source) canShow(req *http.Request) bool {
	if s.custom {
		for _, clause := range encoding.ParseAccept(strings.Join(req.Header.Values("Accept"), ",")) {
			if clause.Params["as"] == "Table" {
				return false
			}
		}
	}
	selector, err := fields.ParseSelector(req.URL.Query().Get("fieldSelector"))
	if err != nil {
		return true // the error is the same here
	}
	for _, requirement := range selector.Requirements() {
		if requirement.Field == "metadata.name" || requirement.Field == "metadata.namespace" {
			continue
		}
		if _, ok := s.res.FieldIndex(requirement.Field); !ok {
			return false
		}
	}
	return true
}
