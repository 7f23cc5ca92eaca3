package epoch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/epoch"
	"github.com/levelwire/levelwire/storage/memory"
)

func newStore(t *testing.T) storage.Store {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func fill(t *testing.T, store storage.Store, keys ...string) (last storage.Revision) {
	t.Helper()
	for _, key := range keys {
		var err error
		if last, err = store.Create(t.Context(), key, []byte("x"), 0); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

func config(file string) epoch.Config {
	return epoch.Config{Path: file, Logger: slog.New(slog.DiscardHandler)}
}

func open(t *testing.T, store storage.Store, file string) (storage.Store, *epoch.Tracker) {
	t.Helper()
	seen, tracker, err := epoch.Open(t.Context(), store, config(file))
	if err != nil {
		t.Fatal(err)
	}
	return seen, tracker
}

// stop lets a tracker run to its end.
func stop(t *testing.T, tracker *epoch.Tracker) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracker.Run(ctx); err != nil {
		t.Error(err)
	}
}

// TestShift shifts the revisions of a store, in both directions.
func TestShift(t *testing.T) {
	const offset = 1000
	inner := newStore(t)
	s := epoch.Shift(inner, offset)
	ctx := t.Context()
	first := fill(t, s, "/a")
	if first <= offset {
		t.Fatalf("revision %d", first)
	}
	second, err := s.Update(ctx, "/a", []byte("y"), first, 0)
	if err != nil {
		t.Fatal(err)
	}
	if kv, err := s.Get(ctx, "/a", first); err != nil || string(kv.Value) != "x" || kv.Modified != first || kv.Created != first {
		t.Errorf("get: %+v, %v", kv, err)
	}
	if page, err := s.List(ctx, "/", storage.ListOptions{}); err != nil || page.Revision != second || page.Items[0].Modified != second {
		t.Errorf("list: %+v, %v", page, err)
	}
	var conflict *storage.ConflictError
	for _, stale := range []storage.Revision{first, offset - 1} {
		if _, err := s.Delete(ctx, "/a", stale); !errors.As(err, &conflict) || conflict.Expect != stale || conflict.Current.Modified != second {
			t.Errorf("delete at %d: %v", stale, err)
		}
	}
	if _, err := s.Create(ctx, "/a", nil, 0); !errors.As(err, &conflict) || conflict.Current.Modified != second {
		t.Errorf("create: %v", err)
	}
	stream, err := s.Watch(ctx, "/", first)
	if err != nil {
		t.Fatal(err)
	}
	if batch, err := stream.Next(); err != nil || len(batch.Events) != 1 || batch.Events[0].Revision != second || batch.Revision < second {
		t.Errorf("watch: %+v, %v", batch, err)
	}
	if _, err := s.Watch(ctx, "/", offset-1); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("a watch of another epoch: %v", err)
	}
	if _, err := s.Get(ctx, "/a", offset-1); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("a read of another epoch: %v", err)
	}
	var replayed []storage.Revision
	err = s.Replay(ctx, "/", offset, second, func(events []storage.Event) error {
		for _, e := range events {
			replayed = append(replayed, e.Revision)
		}
		return nil
	})
	if err != nil || len(replayed) != 2 || replayed[1] != second {
		t.Errorf("replay: %v, %v", replayed, err)
	}
	if err := s.Compact(ctx, second); err != nil {
		t.Error(err)
	}
	if oldest, err := s.Oldest(ctx); err != nil || oldest != second {
		t.Errorf("oldest: %d, %v", oldest, err)
	}
}

// TestEpochs: a store keeps its revisions over starts, and gets others when it was
// restored to an earlier state, or is another one.
func TestEpochs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "epoch.json")
	ctx := t.Context()
	now := func(s storage.Store) storage.Revision {
		t.Helper()
		revision, err := s.Current(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}

	former := newStore(t)
	s, tracker := open(t, former, file)
	last := fill(t, s, "/a", "/b", "/c")
	stop(t, tracker)
	s, tracker = open(t, former, file)
	if got := now(s); got != last {
		t.Errorf("the same store is at %d, and was at %d", got, last)
	}
	stop(t, tracker)

	restored := newStore(t)
	page, err := former.List(ctx, "/levelwire/", storage.ListOptions{})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%v, %v", page, err)
	}
	if _, err := restored.Create(ctx, page.Items[0].Key, page.Items[0].Value, 0); err != nil {
		t.Fatal(err)
	}
	s, tracker = open(t, restored, file)
	begin := now(s)
	if begin <= last {
		t.Errorf("the restored store is at %d, and clients know %d", begin, last)
	}
	if oldest, err := s.Oldest(ctx); err != nil || oldest <= last {
		t.Errorf("history from %d, %v", oldest, err)
	}
	stop(t, tracker)
	s, tracker = open(t, restored, file)
	if got := now(s); got != begin {
		t.Errorf("the next start is at %d, and the last was at %d", got, begin)
	}
	stop(t, tracker)
	if s, _ = open(t, restored, filepath.Join(t.TempDir(), "other-server.json")); now(s) != begin {
		t.Errorf("another server is at %d, and the first at %d", now(s), begin)
	}

	other := newStore(t)
	fill(t, other, "/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h")
	if s, _ = open(t, other, file); now(s) <= begin {
		t.Errorf("another store is at %d, and clients know %d", now(s), begin)
	}
}

// TestOtherStore: a server is started by mistake with a store that has servers of its
// own. It is refused, and they go on, unless its operator says that the store has taken
// the place of the former one: then versions begin above those of both.
func TestOtherStore(t *testing.T) {
	file, theirs := filepath.Join(t.TempDir(), "epoch.json"), filepath.Join(t.TempDir(), "epoch.json")
	mine, other := newStore(t), newStore(t)
	s, tracker := open(t, mine, file)
	fill(t, s, "/a", "/b", "/c")
	stop(t, tracker)
	s, running := open(t, other, theirs)
	last := fill(t, s, "/a", "/b", "/c", "/d", "/e")

	_, _, err := epoch.Open(t.Context(), other, config(file))
	if !errors.Is(err, epoch.ErrOther) || !strings.Contains(err.Error(), file) {
		t.Errorf("a store with servers of its own: %v", err)
	}
	stop(t, running)
	s, tracker = open(t, mine, file)
	if now, err := s.Current(t.Context()); err != nil || now > last {
		t.Errorf("the server's own store is at %d, %v", now, err)
	}
	stop(t, tracker)

	accepting := config(file)
	accepting.AcceptOther = true
	s, tracker, err = epoch.Open(t.Context(), other, accepting)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := s.Current(t.Context()); err != nil || now <= last {
		t.Errorf("the accepted store is at %d, %v, and its clients know %d", now, err, last)
	}
	stop(t, tracker)
	for _, f := range []string{file, theirs} { // the others are started again
		_, tracker := open(t, other, f)
		stop(t, tracker)
	}
}

// TestBackupOfAnEarlierEpoch is no other store.
func TestBackupOfAnEarlierEpoch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "epoch.json")
	first := newStore(t)
	s, tracker := open(t, first, file)
	fill(t, s, "/a", "/b", "/c")
	stop(t, tracker)
	backup := func() storage.Store {
		page, err := first.List(t.Context(), "/levelwire/", storage.ListOptions{})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("%v, %v", page, err)
		}
		store := newStore(t)
		if _, err := store.Create(t.Context(), page.Items[0].Key, page.Items[0].Value, 0); err != nil {
			t.Fatal(err)
		}
		return store
	}
	var last storage.Revision
	for range 3 { // each time an earlier state than before, of the first epoch
		s, tracker := open(t, backup(), file)
		now, err := s.Current(t.Context())
		if err != nil || now <= last {
			t.Errorf("the backup is at %d, %v, and clients know %d", now, err, last)
		}
		last = fill(t, s, "/a")
		stop(t, tracker)
	}
}

// TestRestoredWhileRunning: a running server ends.
func TestRestoredWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &replaceable{Store: newStore(t)}
		s, tracker := open(t, store, filepath.Join(t.TempDir(), "epoch.json"))
		fill(t, s, "/a", "/b")
		ended := make(chan error, 1)
		go func() { ended <- tracker.Run(t.Context()) }()
		synctest.Wait()
		other := newStore(t)
		store.other.Store(&other)
		if err := <-ended; !errors.Is(err, epoch.ErrEnded) {
			t.Errorf("the tracker ended with %v", err)
		}
	})
}

// replaceable is a store in whose place another one comes, for a Tracker that runs.
type replaceable struct {
	storage.Store
	other atomic.Pointer[storage.Store]
}

func (r *replaceable) now() storage.Store {
	if other := r.other.Load(); other != nil {
		return *other
	}
	return r.Store
}

func (r *replaceable) Current(ctx context.Context) (storage.Revision, error) {
	return r.now().Current(ctx)
}

func (r *replaceable) Get(ctx context.Context, key string, revision storage.Revision) (storage.KeyValue, error) {
	return r.now().Get(ctx, key, revision)
}

// refusing is a store that refuses to read or write some keys, as one does that is
// full, or whose user may not.
type refusing struct {
	storage.Store
	mu       sync.Mutex // guards the following
	get, put error      // nil: it does not refuse
}

// allow ends the refusals.
func (r *refusing) allow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.get, r.put = nil, nil
}

// refuses returns the error for a key, which is one of r's.
func (r *refusing) refuses(key string, with *error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if key != epoch.Key {
		return nil
	}
	return *with
}

var errDenied = errors.New("permission denied")

func (r *refusing) Get(ctx context.Context, key string, at storage.Revision) (storage.KeyValue, error) {
	if err := r.refuses(key, &r.get); err != nil {
		return storage.KeyValue{}, err
	}
	return r.Store.Get(ctx, key, at)
}

func (r *refusing) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	if err := r.refuses(key, &r.put); err != nil {
		return 0, err
	}
	return r.Store.Create(ctx, key, value, ttl)
}

func (r *refusing) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	if err := r.refuses(key, &r.put); err != nil {
		return 0, err
	}
	return r.Store.Update(ctx, key, value, expect, ttl)
}

// refusals are of a user who may not use the key, or not write it, and of a full store.
func refusals(store storage.Store) map[string]*refusing {
	return map[string]*refusing{
		"forbidden":     {Store: store, get: errDenied, put: errDenied},
		"not to write":  {Store: store, put: errDenied},
		"storage: full": {Store: store, put: storage.ErrFull},
	}
}

// TestStoreWithoutEpoch: one that refuses the key serves all the same, again and again,
// and begins its epoch, without an offset, when it does not refuse it any more.
func TestStoreWithoutEpoch(t *testing.T) {
	for name := range refusals(nil) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "epoch.json")
				inner := newStore(t)
				store := refusals(inner)[name]
				s, tracker := open(t, store, file)
				fill(t, s, "/a")
				stop(t, tracker)
				s, tracker = open(t, store, file)
				last := fill(t, s, "/b")
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- tracker.Run(ctx) }()
				time.Sleep(time.Minute)
				store.allow()
				time.Sleep(time.Minute)
				if _, err := inner.Get(t.Context(), epoch.Key, 0); err != nil {
					t.Errorf("the epoch: %v", err)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				s, tracker = open(t, store, file)
				if now, err := s.Current(t.Context()); err != nil || now != last+1 {
					t.Errorf("the store is at %d, %v, and was at %d", now, err, last+1)
				}
				stop(t, tracker)
			})
		})
	}
}

// TestRestoredStoreWithoutEpoch: a store that has gone back, and whose versions clients
// would take for those of before, is not served while it cannot keep an epoch. Neither is
// one whose epoch the server knows and may not read.
func TestRestoredStoreWithoutEpoch(t *testing.T) {
	for name := range refusals(nil) {
		for _, kept := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, kept before: %t", name, kept), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "epoch.json")
				former := newStore(t)
				if !kept {
					former = refusals(former)[name]
				}
				s, tracker := open(t, former, file)
				last := fill(t, s, "/a", "/b", "/c")
				stop(t, tracker)

				other := newStore(t)
				fill(t, other, "/a")
				store := refusals(other)[name]
				_, _, err := epoch.Open(t.Context(), store, config(file))
				if err == nil || !strings.Contains(err.Error(), "make room") || !strings.Contains(err.Error(), epoch.Key) {
					t.Errorf("a restored store that keeps no epoch: %v", err)
				}
				store.allow()
				s, tracker = open(t, store, file)
				if now, err := s.Current(t.Context()); err != nil || now <= last {
					t.Errorf("the store is at %d, %v, and clients know %d", now, err, last)
				}
				stop(t, tracker)
			})
		}
	}
}

// TestStoreDoesNotAnswer: a start waits for the epoch of a store that does not answer
// for a moment, and fails if it goes on. Without the offset, the store's revisions would
// be below those that clients know.
func TestStoreDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "epoch.json")
		s, tracker := open(t, newStore(t), file)
		fill(t, s, "/a", "/b")
		stop(t, tracker)
		other := newStore(t)
		s, tracker = open(t, other, file)
		known := fill(t, s, "/a")
		stop(t, tracker)

		s, tracker = open(t, &down{Store: other, calls: 3}, file)
		if got, err := s.Current(t.Context()); err != nil || got < known {
			t.Errorf("after an interruption, the store is at %d, %v, and clients know %d", got, err, known)
		}
		stop(t, tracker)
		_, _, err := epoch.Open(t.Context(), &down{Store: other, calls: 1000}, config(file))
		if !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("a store that does not answer: %v", err)
		}
	})
}

// down is a store that does not answer some calls.
type down struct {
	storage.Store
	calls int
}

func (s *down) Get(ctx context.Context, key string, at storage.Revision) (storage.KeyValue, error) {
	if s.calls--; s.calls >= 0 {
		return storage.KeyValue{}, storage.ErrUnavailable
	}
	return s.Store.Get(ctx, key, at)
}

// TestDamagedEpoch is not taken for one without an offset.
func TestDamagedEpoch(t *testing.T) {
	store := newStore(t)
	if _, err := store.Create(t.Context(), epoch.Key, []byte("{"), 0); err != nil {
		t.Fatal(err)
	}
	_, _, err := epoch.Open(t.Context(), store, config(filepath.Join(t.TempDir(), "epoch.json")))
	if err == nil || !strings.Contains(err.Error(), epoch.Key) {
		t.Errorf("a damaged epoch: %v", err)
	}
}
