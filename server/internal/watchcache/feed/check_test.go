package feed_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// lateAnswer is a store whose answer to Current arrives after the stream has delivered
// what was written meanwhile.
type lateAnswer struct {
	*memory.Store
	meanwhile func()
}

func (s *lateAnswer) Current(ctx context.Context) (storage.Revision, error) {
	now, err := s.Store.Current(ctx)
	if s.meanwhile != nil {
		s.meanwhile()
	}
	return now, err
}

// TestWritesDuringACheck are not taken for a store that has gone back in time.
func TestWritesDuringACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		source := &lateAnswer{Store: store}
		r := startRig(t, store, source, feed.Options{})
		before := r.feed.Stats()
		source.meanwhile = func() {
			source.meanwhile = nil
			write(t, store, podA)
			synctest.Wait()
		}
		if n, err := r.feed.Check(t.Context()); n != 0 || err != nil {
			t.Errorf("%d differences, %v", n, err)
		}
		synctest.Wait()
		if got := r.feed.Stats(); got.Relists != before.Relists || got.Checks == before.Checks {
			t.Errorf("stats %+v, want no more lists than in %+v, and a check", got, before)
		}
	})
}

// TestRechecksAreRare: a stream that breaks again and again has the caches compared with
// the store at once, and then only now and then; what was written last is compared, too.
func TestRechecksAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		write(t, store, podA)
		source := &faulty{Store: store}
		r := startRig(t, store, source, feed.Options{})
		var compared atomic.Int64
		source.listing.Store(new(func(opts storage.ListOptions) error {
			if opts.KeysOnly {
				compared.Add(1)
			}
			return nil
		}))
		resume := func() {
			source.breakWith(storage.ErrUnavailable)
			write(t, store, podB)
			erase(t, store, "/registry/pods/"+podB.Key())
			time.Sleep(100 * time.Millisecond)
			source.repair()
			time.Sleep(100 * time.Millisecond)
		}
		resume()
		time.Sleep(time.Second)
		const caches = 2
		if n := compared.Load(); n != caches {
			t.Errorf("%d caches were compared after the first resumption, want %d", n, caches)
		}
		began := time.Now()
		for time.Since(began) < time.Minute {
			resume()
		}
		most := caches * int64(time.Minute/(5*time.Second)+2)
		if n := compared.Load(); n < 10*caches || n > most {
			t.Errorf("%d caches were compared in a minute, want at most %d", n, most)
		}
		before := compared.Load()
		time.Sleep(10 * time.Second)
		if compared.Load() == before {
			t.Error("no cache was compared after the last resumption")
		}
		if r.feed.Stats().Resumes < 50 {
			t.Errorf("%+v", r.feed.Stats())
		}
	})
}
