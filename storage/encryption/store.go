package encryption

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2"

	"github.com/levelwire/levelwire/storage"
)

// Options are what a Store needs beside its configuration.
type Options struct {
	// Resource returns the resource whose objects are stored under a key, AllResources
	// for a key that holds parts of objects of several, and the zero value for one that
	// holds none: its value is stored as it is. It is called concurrently. Required.
	Resource func(key string) schema.GroupResource
	// Logger; nil is slog.Default().
	Logger *slog.Logger

	dial dial // for tests; kmsv2.NewGRPCService
}

// Store is a storage.Store whose values are encrypted in the store that it wraps.
// Values that it returns are the caller's, but may be shared with the wrapped store.
type Store struct {
	inner storage.Store
	opts  Options
	rules atomic.Pointer[rules]

	counts counts

	reloading sync.Mutex      // held by Reload, and by Close while it ends ctx
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	running   sync.WaitGroup // of former rules
	closing   sync.Once
	closeErr  error
}

// New returns a store that encrypts the values of inner as the configuration says, and
// closes inner when it is closed.
func New(inner storage.Store, config *Config, opts Options) (*Store, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.dial == nil {
		opts.dial = kmsv2.NewGRPCService
	}
	s := &Store{inner: inner, opts: opts}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	first, err := s.newRules(s.ctx, config)
	if err != nil {
		s.cancel()
		return nil, err
	}
	s.rules.Store(first)
	return s, nil
}

// newRules makes the rules of a configuration. It waits for KMS plugins until ctx ends.
func (s *Store) newRules(ctx context.Context, config *Config) (*rules, error) {
	return newRules(config, func(config *apiserver.KMSConfiguration) (*plugin, error) {
		return startPlugin(ctx, config, s.opts.dial, s.opts.Logger)
	})
}

// Unwrap returns the store whose values are encrypted: see storage.Innermost.
func (s *Store) Unwrap() storage.Store { return s.inner }

// Check returns an error if a KMS plugin does not answer. It is for readiness.
func (s *Store) Check() error {
	var failed []error
	for _, p := range s.rules.Load().plugins {
		failed = append(failed, p.check())
	}
	return errors.Join(failed...)
}

// Close implements storage.Store.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.closeErr = s.inner.Close() // first: it ends the calls that may wait for a plugin
		s.cancel()
		s.reloading.Lock() // a Reload has ended, and no other begins
		defer s.reloading.Unlock()
		s.running.Wait()
		s.rules.Load().close()
	})
	return s.closeErr
}

// open replaces the stored form of a value by the value. One that cannot be read is
// replaced by storage.Unreadable.
func (s *Store) open(ctx context.Context, r *rules, key string, value []byte) ([]byte, bool, error) {
	if len(value) == 0 {
		return value, false, nil
	}
	resource := s.opts.Resource(key)
	keys := r.of(resource)
	plain, stale, used, err := decrypt(ctx, keys, key, value)
	if len(keys) > 0 && (err == nil || ctx.Err() == nil) {
		s.counts.decrypted(resource, used, err)
	}
	var bad *unreadable
	if errors.As(err, &bad) {
		return storage.Unreadable(bad.reason(r.config.path)), false, nil
	}
	return plain, stale, err
}

func (s *Store) openItem(ctx context.Context, r *rules, item *storage.KeyValue) (err error) {
	item.Value, item.Stale, err = s.open(ctx, r, item.Key, item.Value)
	return err
}

func (s *Store) openEvent(ctx context.Context, r *rules, e *storage.Event) (err error) {
	if !e.Deleted {
		e.Value, _, err = s.open(ctx, r, e.Key, e.Value)
	}
	return err
}

// parallelFrom is how many values one goroutine decrypts at least: that takes longer
// than to start another one.
const parallelFrom = 64

// each calls f for 0 to n-1, on all cores if there are many. It returns one of the
// errors.
func each(n int, f func(i int) error) error {
	workers := min(runtime.GOMAXPROCS(0), n/parallelFrom)
	if workers < 2 {
		for i := range n {
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	}
	failed := make([]error, workers)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for i := w * n / workers; i < (w+1)*n/workers && failed[w] == nil; i++ {
				failed[w] = f(i)
			}
		})
	}
	wait.Wait()
	return errors.Join(failed...)
}

// Get implements storage.Reader.
func (s *Store) Get(ctx context.Context, key string, at storage.Revision) (storage.KeyValue, error) {
	item, err := s.inner.Get(ctx, key, at)
	if err == nil {
		err = s.openItem(ctx, s.rules.Load(), &item)
	}
	if err != nil {
		return storage.KeyValue{}, err
	}
	return item, nil
}

// List implements storage.Reader.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	page, err := s.inner.List(ctx, prefix, opts)
	if err != nil || opts.KeysOnly {
		return page, err
	}
	page.Items = slices.Clone(page.Items)
	r := s.rules.Load()
	if page.Release != nil && len(r.plugins) > 0 {
		own(&page)
	}
	if err := each(len(page.Items), func(i int) error { return s.openItem(ctx, r, &page.Items[i]) }); err != nil {
		if page.Release != nil {
			page.Release()
		}
		return storage.Page{}, err
	}
	return page, nil
}

// own copies the values of a page that is lent, and ends the loan. Decrypting them may ask a
// KMS plugin, and the wrapped store must not wait for one that does not answer.
func own(page *storage.Page) {
	for i := range page.Items {
		page.Items[i].Value = bytes.Clone(page.Items[i].Value)
	}
	page.Release()
	page.Release = nil
}

// Current implements storage.Reader.
func (s *Store) Current(ctx context.Context) (storage.Revision, error) { return s.inner.Current(ctx) }

// conflict decrypts the state in an error of a write.
func (s *Store) conflict(ctx context.Context, err error) error {
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) || conflict.Current == nil {
		return err
	}
	current := *conflict.Current
	if err := s.openItem(ctx, s.rules.Load(), &current); err != nil {
		return err
	}
	return &storage.ConflictError{Key: conflict.Key, Expect: conflict.Expect, Current: &current}
}

func (s *Store) encrypt(ctx context.Context, key string, value []byte) ([]byte, error) {
	resource := s.opts.Resource(key)
	keys := s.rules.Load().of(resource)
	stored, err := encrypt(ctx, keys, key, value)
	if len(keys) > 0 && (err == nil || ctx.Err() == nil) {
		s.counts.encrypted(resource, keys[0], err)
	}
	return stored, err
}

// Create implements storage.Writer.
func (s *Store) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	stored, err := s.encrypt(ctx, key, value)
	if err != nil {
		return 0, err
	}
	revision, err := s.inner.Create(ctx, key, stored, ttl)
	return revision, s.conflict(ctx, err)
}

// Update implements storage.Writer.
func (s *Store) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	stored, err := s.encrypt(ctx, key, value)
	if err != nil {
		return 0, err
	}
	revision, err := s.inner.Update(ctx, key, stored, expect, ttl)
	return revision, s.conflict(ctx, err)
}

// Delete implements storage.Writer.
func (s *Store) Delete(ctx context.Context, key string, expect storage.Revision) (storage.Revision, error) {
	revision, err := s.inner.Delete(ctx, key, expect)
	return revision, s.conflict(ctx, err)
}

// Watch implements storage.Watcher.
func (s *Store) Watch(ctx context.Context, prefix string, after storage.Revision) (storage.Stream, error) {
	stream, err := s.inner.Watch(ctx, prefix, after)
	if err != nil {
		return nil, err
	}
	return &decryptedStream{ctx: ctx, store: s, stream: stream}, nil
}

// decryptedStream decrypts what another stream delivers.
type decryptedStream struct {
	ctx    context.Context // of the Watch; its end ends the stream
	store  *Store
	stream storage.Stream
	events []storage.Event // of the last batch
	failed error
}

// Next implements storage.Stream.
func (d *decryptedStream) Next() (storage.Batch, error) {
	if d.failed != nil {
		return storage.Batch{}, d.failed
	}
	batch, err := d.stream.Next()
	if err == nil && len(batch.Events) > 0 {
		batch.Events, err = d.store.openEvents(d.ctx, d.events, batch.Events)
		d.events = batch.Events
	}
	if err != nil {
		d.failed = err
		return storage.Batch{}, err
	}
	return batch, nil
}

// openEvents decrypts events into the memory of others, which it overwrites.
func (s *Store) openEvents(ctx context.Context, into, events []storage.Event) ([]storage.Event, error) {
	clear(into)
	into = append(into[:0], events...)
	r := s.rules.Load()
	return into, each(len(into), func(i int) error { return s.openEvent(ctx, r, &into[i]) })
}

// Oldest implements storage.Historian.
func (s *Store) Oldest(ctx context.Context) (storage.Revision, error) { return s.inner.Oldest(ctx) }

// Replay implements storage.Historian.
func (s *Store) Replay(ctx context.Context, prefix string, after, through storage.Revision, visit func([]storage.Event) error) error {
	var events []storage.Event
	return s.inner.Replay(ctx, prefix, after, through, func(run []storage.Event) (err error) {
		if events, err = s.openEvents(ctx, events, run); err != nil {
			return err
		}
		return visit(events)
	})
}

// Compact implements storage.Compactor.
func (s *Store) Compact(ctx context.Context, at storage.Revision) error {
	return s.inner.Compact(ctx, at)
}

var _ storage.Store = (*Store)(nil)
