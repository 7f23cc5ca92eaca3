package workload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// Subject is an informer that a test is about, with its handlers.
type Subject interface {
	// Describe is its name and its statistics.
	Describe() string
	// Stats are those of its Reflector, since its last start.
	Stats() reflector.Stats
	// Reloads is how often its clients have used rotated credentials.
	Reloads() int64
	// Agree waits until the cache and every handler show what the
	// subject should see of what the server has now.
	Agree(ctx context.Context, now func() (State, error)) error
	// Disturb adds a handler or removes one.
	Disturb(t *testing.T, random *rand.Rand)
	// Restart stops the informer and starts another in its place.
	Restart(t *testing.T)
	Stop()
}

// errWrong is what no waiting mends.
var errWrong = errors.New("got wrong events")

// MaxFrameBytes is that of the subjects' clients.
const MaxFrameBytes = 1 << 20

// quick finds connections that went silent much sooner than usual.
var quick = client.Options{ReadIdleTimeout: 500 * time.Millisecond, PingTimeout: 500 * time.Millisecond, MaxFrameBytes: MaxFrameBytes}

// impatient tries again much sooner than usual.
var impatient = reflector.Options{
	InitialEventsTimeout: 5 * time.Second, WatchTimeout: 5 * time.Second, OpenTimeout: 3 * time.Second, ListTimeout: 5 * time.Second,
	Backoff:   reflector.Backoff{Base: 50 * time.Millisecond, Max: 500 * time.Millisecond},
	GoneAfter: 300 * time.Millisecond, // a proxy's page lasts longer
}

// NewSubjects starts an informer of each kind. Every client goes through wrap,
// unless that is nil.
func NewSubjects(t *testing.T, config *rest.Config, wrap func(http.RoundTripper) http.RoundTripper) []Subject {
	quick := quick
	quick.WrapTransport = wrap
	typed := func(f *informer.Factory, o informer.ListOptions) *informer.SharedInformer[*corev1.ConfigMap] {
		return informer.For[*corev1.ConfigMap](f, o)
	}
	all := func(string, Stamp) bool { return true }
	everything := informer.ListOptions{LabelSelector: Selector}
	pages, polls := impatient, impatient
	pages.PagedList, pages.PageSize, pages.InitialEventsTimeout = true, 30, 0
	polls.PollTimeout, polls.InitialEventsTimeout, polls.WatchTimeout = time.Second, 0, 0
	disk := informer.DiskOptions{Directory: t.TempDir(), Interval: time.Second}
	protobuf, http1 := quick, quick
	protobuf.ContentType, http1.ForceHTTP1 = client.Protobuf, true
	inDefault := func(key string, _ Stamp) bool { return strings.HasPrefix(key, "default/") }
	return []Subject{
		begin(t, "protobuf", config, protobuf, informer.Options{Reflector: impatient}, everything, all, typed),
		begin(t, "JSON in pages, repaired", config, quick, informer.Options{Reflector: pages, ConsistencyCheckInterval: 3 * time.Second}, everything, all, typed),
		begin(t, "on disk", config, protobuf, informer.Options{Reflector: impatient, Disk: disk, Resync: time.Second}, everything, all, typed),
		begin(t, "filtered", config, protobuf, informer.Options{Reflector: impatient},
			informer.ListOptions{LabelSelector: Selector + ",color=red"}, func(_ string, s Stamp) bool { return s.Red }, typed),
		begin(t, "a namespace by its field", config, protobuf, informer.Options{Reflector: impatient},
			informer.ListOptions{FieldSelector: "metadata.namespace=default", LabelSelector: Selector}, inDefault, typed),
		begin(t, "polling, one namespace", config, http1, informer.Options{Reflector: polls},
			informer.ListOptions{Namespace: "default", LabelSelector: Selector}, inDefault, typed),
		begin(t, "two namespaces", config, quick, informer.Options{Reflector: impatient},
			informer.ListOptions{Namespaces: Namespaces, LabelSelector: Selector}, all, typed),
		begin(t, "metadata", config, protobuf, informer.Options{Reflector: impatient}, everything, all,
			func(f *informer.Factory, o informer.ListOptions) *informer.SharedInformer[*metav1.PartialObjectMetadata] {
				return informer.Metadata(f, corev1.SchemeGroupVersion.WithResource("configmaps"), o)
			}),
	}
}

// shared is an informer of any type of object.
type shared[T client.Object] struct {
	name    string
	connect func() *client.Client
	opts    informer.Options
	make    func(*informer.Factory) *informer.SharedInformer[T]
	selects func(key string, s Stamp) bool

	client   *client.Client
	reloaded int64 // by clients before it
	factory  *informer.Factory
	informer *informer.SharedInformer[T]
	handlers []*checker[T]
	ctx      context.Context
	cancel   context.CancelFunc
}

func begin[T client.Object](t *testing.T, name string, config *rest.Config, connect client.Options, opts informer.Options, list informer.ListOptions,
	selects func(string, Stamp) bool, of func(*informer.Factory, informer.ListOptions) *informer.SharedInformer[T]) Subject {
	connect.Logger, opts.Logger = slog.New(slog.DiscardHandler), slog.New(slog.DiscardHandler) // panics on purpose, most of all
	s := &shared[T]{name: name, selects: selects, opts: opts,
		connect: func() *client.Client { return NewClient(t, config, connect) },
		make:    func(f *informer.Factory) *informer.SharedInformer[T] { return of(f, list) },
	}
	s.run(t)
	return s
}

// run starts an informer with the handlers that each has.
func (s *shared[T]) run(t *testing.T) {
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(t.Context()))
	s.client = s.connect()
	s.factory = informer.NewFactory(s.client, s.opts)
	s.informer = s.make(s.factory)
	s.handlers = nil
	s.handle(t, &checker[T]{}, informer.HandlerOptions{})
	s.handle(t, &checker[T]{}, informer.HandlerOptions{MaxUnmergedEvents: 1 << 20})
	s.handle(t, &checker[T]{slow: 5 * time.Millisecond}, informer.HandlerOptions{})
	s.handle(t, &checker[T]{panicEvery: 50}, informer.HandlerOptions{})
	s.factory.Start(s.ctx)
}

func (s *shared[T]) handle(t *testing.T, c *checker[T], opts informer.HandlerOptions) {
	t.Helper()
	c.ctx, c.known, c.gone = s.ctx, State{}, map[string]uint64{}
	var err error
	if c.registration, err = s.informer.AddHandler(c, opts); err != nil {
		t.Fatal(err)
	}
	s.handlers = append(s.handlers, c)
}

func (s *shared[T]) Describe() string { return fmt.Sprintf("%s: %+v", s.name, s.informer.Stats()) }

func (s *shared[T]) Stats() reflector.Stats { return s.informer.Stats().Reflector }

func (s *shared[T]) Reloads() int64 { return s.reloaded + s.client.Stats().CredentialReloads }

func (s *shared[T]) Agree(ctx context.Context, now func() (State, error)) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for n := 0; ; n++ {
		// A write whose answer was lost may take effect later, so the server
		// is asked again and again.
		want, err := now()
		if err != nil {
			return err
		}
		if err = s.compare(s.selected(want)); err == nil || errors.Is(err, errWrong) {
			return err
		}
		for range min(n, 25) {
			select {
			case <-again.C:
			case <-ctx.Done():
				return err
			}
		}
	}
}

// selected is what the subject should see.
func (s *shared[T]) selected(all State) State {
	seen := State{}
	for key, stamp := range all {
		if s.selects(key, stamp) {
			seen[key] = stamp
		}
	}
	return seen
}

func (s *shared[T]) compare(want State) error {
	select {
	case <-s.informer.Synced():
	default:
		return errors.New("it has not listed")
	}
	if n := s.Stats().Lists[reflector.ListReturned]; n > 0 || !s.informer.Freshness().GoneSince.IsZero() {
		return fmt.Errorf("%w: the resource was taken for gone, and then listed %d times", errWrong, n)
	}
	got := State{}
	for _, obj := range s.informer.Lister().List("", nil) {
		got[KeyOf(obj)] = StampOf(obj)
	}
	if err := difference(got, want); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	for n, c := range s.handlers {
		if err := c.compare(want); err != nil {
			return fmt.Errorf("handler %d (slow: %v, panics: %v): %w", n, c.slow > 0, c.panicEvery > 0, err)
		}
	}
	return nil
}

// most is how many handlers an informer has at a time.
const most = 8

func (s *shared[T]) Disturb(t *testing.T, random *rand.Rand) {
	t.Helper()
	if n := len(s.handlers); n < most && random.IntN(2) == 0 {
		c, opts := &checker[T]{}, informer.HandlerOptions{MaxUnmergedEvents: random.IntN(2) << 20}
		if opts.MaxUnmergedEvents == 0 { // a handler that must get every event must keep up, too
			c.slow = time.Duration(random.IntN(5)) * time.Millisecond
		}
		s.handle(t, c, opts)
		return
	}
	n := random.IntN(len(s.handlers))
	removed := s.handlers[n]
	s.handlers = slices.Delete(s.handlers, n, n+1)
	select {
	case <-removed.registration.Remove():
	case <-time.After(Timeout):
		t.Error("a handler's call does not end")
	}
	if len(s.handlers) == 0 {
		s.handle(t, &checker[T]{}, informer.HandlerOptions{})
	}
}

func (s *shared[T]) Restart(t *testing.T) {
	s.Stop()
	s.run(t)
}

func (s *shared[T]) Stop() {
	s.cancel()
	s.factory.Shutdown()
	s.reloaded += s.client.Stats().CredentialReloads
	s.client.CloseIdleConnections()
}
