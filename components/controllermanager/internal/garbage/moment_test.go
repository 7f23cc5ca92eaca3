package garbage

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

type metadata = metav1.PartialObjectMetadata

// server serves one resource that is empty, and sends no bookmarks.
type server struct {
	listed  string        // the version of lists
	recent  string        // and of those of one object, which say how far the storage is
	broken  bool          // no watch can be opened, and nothing listed again
	pending bool          // there is a change, which only short watches bring
	every   time.Duration // how often an object changes, from the version listed on; 0: never
	lists   atomic.Int64
	asked   atomic.Int64 // with short watches
	answer  atomic.Pointer[answer]

	mu     sync.Mutex
	began  time.Time // of the changes
	gone   bool
	closes []func() // of watches
}

// answer is how a server answers short watches for a while.
type answer func(ctx context.Context, lifetime time.Duration) (reflector.Stream[*metadata], error)

var errBroken = errors.New("the conversion webhook cannot be reached")

func status(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason}}
}

// serve has the server have its resource, or not.
func (s *server) serve(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = !yes
	for _, end := range s.closes {
		end()
	}
	s.closes = nil
}

// served returns an error while the server does not have its resource.
func (s *server) served(end func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return status(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	s.closes = append(s.closes, end)
	return nil
}

// current returns the version of a server in which an object changes.
func (s *server) current() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() {
		s.began = time.Now()
	}
	first, _ := strconv.ParseInt(s.listed, 10, 64)
	return first + int64(time.Since(s.began)/s.every)
}

func (s *server) List(_ context.Context, opts metav1.ListOptions) (*client.List[*metadata], error) {
	if err := s.served(func() {}); err != nil {
		return nil, err
	}
	version := s.listed
	switch {
	case s.every > 0:
		version = strconv.FormatInt(s.current(), 10)
	case opts.Limit == 1:
		version = s.recent
	case s.lists.Add(1) > 1 && s.broken:
		return nil, errBroken
	}
	return &client.List[*metadata]{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: []*metadata{}}, nil
}

func (s *server) Watch(asking context.Context, opts metav1.ListOptions) (reflector.Stream[*metadata], error) {
	if s.broken {
		return nil, errBroken
	}
	ctx, cancel := context.WithCancel(asking)
	if err := s.served(cancel); err != nil {
		cancel()
		return nil, err
	}
	short := opts.TimeoutSeconds != nil && *opts.TimeoutSeconds <= 3
	if short {
		s.asked.Add(1)
		lifetime := time.Duration(*opts.TimeoutSeconds) * time.Second
		if other := s.answer.Load(); other != nil {
			cancel()
			return (*other)(asking, lifetime)
		}
		time.AfterFunc(lifetime, cancel)
	}
	if s.every > 0 {
		from, err := strconv.ParseInt(opts.ResourceVersion, 10, 64)
		return &changes{s, ctx, cancel, from}, err
	}
	return &stream{ctx, cancel, short && s.pending}, nil
}

// stream has no bookmarks.
type stream struct {
	ctx    context.Context
	cancel func()
	change bool
}

func (s *stream) Next() (client.WatchEvent[*metadata], error) {
	if s.change {
		return client.WatchEvent[*metadata]{Type: apiwatch.Added, Object: &metadata{ObjectMeta: metav1.ObjectMeta{Name: "new", ResourceVersion: "90"}}}, nil
	}
	<-s.ctx.Done()
	return client.WatchEvent[*metadata]{}, io.EOF
}

func (s *stream) Close() { s.cancel() }

// quiet is of a server that does not answer.
type quiet struct{ ctx context.Context }

func (q quiet) Next() (client.WatchEvent[*metadata], error) {
	<-q.ctx.Done()
	return client.WatchEvent[*metadata]{}, q.ctx.Err()
}

func (quiet) Close() {}

// changes are those of a server in which an object changes.
type changes struct {
	server *server
	ctx    context.Context
	cancel func()
	at     int64
}

func (c *changes) Next() (client.WatchEvent[*metadata], error) {
	for c.server.current() <= c.at {
		select {
		case <-time.After(c.server.every / 10): // of the bubble
		case <-c.ctx.Done():
			return client.WatchEvent[*metadata]{}, io.EOF
		}
	}
	c.at++
	return client.WatchEvent[*metadata]{Type: apiwatch.Modified, Object: &metadata{ObjectMeta: metav1.ObjectMeta{Name: "busy", ResourceVersion: strconv.FormatInt(c.at, 10)}}}, nil
}

func (c *changes) Close() { c.cancel() }

// collecting returns a collector that watches only the resource of a server, and has listed it.
func collecting(t *testing.T, s *server) (*Controller, *informer.SharedInformer[*metadata]) {
	t.Helper()
	c, err := New(nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.discoveries.end(time.Now(), nil, nil)
	inf := informer.New[*metadata]("things", s, reflector.Options{PagedList: true, Logger: slog.New(slog.DiscardHandler)})
	handler, err := inf.AddHandler(informer.HandlerFuncs[*metadata]{}, informer.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	things := schema.GroupVersionResource{Resource: "things"}
	c.watching[things] = watched{resource: things, informer: inf, handler: handler, namespaced: true, answers: &answers{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- inf.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-inf.Synced()
	synctest.Wait()
	return c, inf
}

// ownerAt returns an owner that was marked at a version.
func ownerAt(version string) object {
	o := thing("owner")
	o.resource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	o.version = version
	return o
}

// awaits looks at an owner again and again, as reconcile does, and returns for how long it has
// waited in all: after ten minutes it is taken to wait for ever.
func awaits(t *testing.T, c *Controller, o object) time.Duration {
	t.Helper()
	begun := c.waits.begin(o.uid)
	for _, err := c.awaitGraph(t.Context(), o); err != nil; _, err = c.awaitGraph(t.Context(), o) {
		if !errors.Is(err, errGraphBehind) {
			t.Fatal(err)
		}
		if time.Since(begun) > 10*brokenPatience {
			break
		}
		time.Sleep(graphRetry) // of the bubble
	}
	return time.Since(begun)
}

// TestOwnersWaitForAResource: an owner that was marked at version 100 waits for a resource that may have its dependents, but
// not for ever for one whose server cannot say so.
func TestOwnersWaitForAResource(t *testing.T) {
	for name, tt := range map[string]struct {
		server *server
		waits  time.Duration // at least; -1: for ever
		asked  int64         // at most, for all owners
	}{
		"that is there":                                         {&server{listed: "100"}, 0, 0},
		"that cannot be watched":                                {&server{listed: "80", broken: true}, brokenPatience, 0},
		"whose server sends no bookmarks":                       {&server{listed: "80", recent: "120"}, brokenPatience, 40},
		"with changes that the watch holds back":                {&server{listed: "80", recent: "120", pending: true}, -1, 4000},
		"with versions of another storage":                      {&server{listed: "7", recent: "7"}, 0, 3},
		"in which something changes always, in another storage": {&server{listed: "7", every: 2 * time.Second}, 0, 12},
		"without versions":                                      {&server{}, 0, 0},
		"with the version 0":                                    {&server{listed: "0", recent: "0"}, 0, 0},
		"with versions that are no numbers":                     {&server{listed: "a3f", recent: "a3f"}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := collecting(t, tt.server)
				const owners = 20 // are deleted at once
				o := ownerAt("100")
				for i := range owners {
					if took := awaits(t, c, o); tt.waits >= 0 && (took < tt.waits || took > tt.waits+2*graphTimeout) || tt.waits < 0 && took <= 10*brokenPatience {
						t.Fatalf("owner %d has waited for %v, want about %v", i, took, tt.waits)
					}
				}
				if n := tt.server.asked.Load(); n > tt.asked {
					t.Errorf("the server was asked %d times, want %d at most", n, tt.asked)
				}
			})
		})
	}
}

// TestOwnersWaitForChangesThatAreHeldBack: that the server cannot be asked for a while, or once
// sent no bookmark in time, is no reason to give up a resource whose watch lacks changes.
func TestOwnersWaitForChangesThatAreHeldBack(t *testing.T) {
	refuse := func(code int32, reason metav1.StatusReason) answer {
		return func(context.Context, time.Duration) (reflector.Stream[*metadata], error) {
			return nil, status(code, reason)
		}
	}
	end := func(after func(lifetime time.Duration) time.Duration) answer {
		return func(_ context.Context, lifetime time.Duration) (reflector.Stream[*metadata], error) {
			ctx, cancel := context.WithTimeout(context.Background(), after(lifetime))
			return &stream{ctx, cancel, false}, nil
		}
	}
	for name, tt := range map[string]struct {
		answer   answer
		from, to time.Duration // for which the server answers so
	}{
		"too many requests":         {refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), 50 * time.Second, 80 * time.Second},
		"the server is unavailable": {refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), 50 * time.Second, 80 * time.Second},
		"the connection breaks": {func(context.Context, time.Duration) (reflector.Stream[*metadata], error) {
			return nil, io.ErrUnexpectedEOF
		}, 50 * time.Second, 80 * time.Second},
		"the watch ends at once": {end(func(time.Duration) time.Duration { return 0 }), 50 * time.Second, 80 * time.Second},
		"the server is slow": {func(ctx context.Context, _ time.Duration) (reflector.Stream[*metadata], error) {
			return quiet{ctx}, nil
		}, 50 * time.Second, 80 * time.Second},
		"there once was no bookmark": {end(func(lifetime time.Duration) time.Duration { return lifetime }), 30 * time.Second, 45 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{listed: "80", recent: "120", pending: true}
				c, inf := collecting(t, s)
				time.AfterFunc(tt.from, func() { s.answer.Store(&tt.answer) })
				time.AfterFunc(tt.to, func() { s.answer.Store(nil) })
				if took := awaits(t, c, ownerAt("100")); took <= 10*brokenPatience {
					t.Errorf("decided after %v, with a change held back; the watch: %v", took, inf.Stats().Reflector.LastError)
				}
			})
		})
	}
}

// TestOwnersOfOtherVersions: an owner of an aggregated server, whose versions are higher, says nothing of
// another resource's owners.
func TestOwnersOfOtherVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{listed: "80", recent: "120"}
		c, _ := collecting(t, s)
		aggregated := ownerAt("1000000")
		aggregated.resource = schema.GroupVersionResource{Group: "wardle.example.com", Version: "v1alpha1", Resource: "flunders"}
		if took := awaits(t, c, aggregated); took > graphTimeout {
			t.Errorf("the aggregated server's owner has waited for %v", took)
		}
		asked := s.asked.Load()
		if _, err := c.awaitGraph(t.Context(), aggregated); err != nil || s.asked.Load() != asked {
			t.Errorf("%v: that versions are other ones was found out again", err)
		}
		s.pending = true // a dependent, at version 90
		if _, err := c.awaitGraph(t.Context(), ownerAt("100")); !errors.Is(err, errGraphBehind) {
			t.Errorf("%v, want that the owner waits for the change that is held back", err)
		}
		time.Sleep(foreignFor) // of the bubble
		if resources, _, err := c.dependentsOf(aggregated); err != nil || resources[0].countsOtherwise(aggregated) {
			t.Errorf("that versions are other ones is not forgotten after %v", foreignFor)
		}
	})
}

// TestForeignResourcesAreBounded: what is known of a resource does not grow with those of owners.
func TestForeignResourcesAreBounded(t *testing.T) {
	w := watched{answers: &answers{}}
	for i := range 2*maxForeign + 1 {
		o := object{resource: schema.GroupVersionResource{Resource: strconv.Itoa(i)}}
		w.learn(informer.ErrOtherVersions, o)
		if n := len(w.answers.foreign); n > maxForeign || !w.answers.isForeign(o.resource) {
			t.Fatalf("%d resources are known, %d at most, and the newest: %v", n, maxForeign, w.answers.isForeign(o.resource))
		}
	}
}

// TestOwnersWaitForAResourceThatReturns: one that is served again has no version until it is
// listed, and may have dependents. While it is gone, an owner waits for a minute.
func TestOwnersWaitForAResourceThatReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{listed: "200", recent: "200"}
		c, inf := collecting(t, s)
		s.serve(false)
		time.Sleep(5 * time.Minute) // of the bubble
		if version := inf.LastSyncResourceVersion(); version != "" || inf.Stats().Reflector.GoneSince.IsZero() {
			t.Fatalf("the resource is not taken for gone: %q", version)
		}
		if took := awaits(t, c, ownerAt("150")); took < brokenPatience || took > brokenPatience+2*graphTimeout {
			t.Errorf("an owner has waited for %v for what is gone", took)
		}
		s.serve(true)
		c.waits.end("owner") // another one
		if took := awaits(t, c, ownerAt("150")); took > brokenPatience || inf.LastSyncResourceVersion() != "200" {
			t.Errorf("decided after %v, with the resource at %q", took, inf.LastSyncResourceVersion())
		}
	})
}

// listQueued is the informer of a resource that was gone: it is listed again, and the graph does not have the list yet.
type listQueued struct{}

func (listQueued) LastSyncResourceVersion() string { return "" }
func (listQueued) HasSynced() bool                 { return true }
func (listQueued) Stats() informer.Stats           { return informer.Stats{Queued: 1} }
func (listQueued) CatchUp(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestOwnersWaitForAListThatIsQueued: an informer applies a list object by object, and has no version until the last.
func TestOwnersWaitForAListThatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := collecting(t, &server{listed: "80", recent: "120"})
		for resource, w := range c.watching {
			w.informer = listQueued{}
			c.watching[resource] = w
		}
		if _, err := c.awaitGraph(t.Context(), ownerAt("100")); !errors.Is(err, errGraphBehind) {
			t.Errorf("%v, want that the owner waits for the list", err)
		}
	})
}
