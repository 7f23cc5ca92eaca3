package watchcache

import (
	"cmp"
	"fmt"
	"time"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// Options tunes a Cache. The zero value of every member means its default.
type Options struct {
	// HistoryEvents is how many events of history are kept; 32768.
	HistoryEvents int
	// HistoryBytes is how much memory, in bytes, the history may hold; 64 MiB.
	// At least one event is kept whatever its size.
	HistoryBytes int64
	// BlockBytes is how much memory, in bytes, the blocks may hold that lists
	// share; 160 MiB. Beyond it the least recently used go. Negative: none is kept.
	BlockBytes int64
	// ExactHistory refuses to answer from coalesced history: a watch from before
	// the log is expired, as is one that is slower than the log. By default it is
	// told the latest change of each object, and the deletions.
	ExactHistory bool
	// Tombstones is how many deletions are remembered when the log has dropped
	// them; 50000. A watch from before the oldest one is expired.
	Tombstones int
	// TombstoneBytes is how much memory, in bytes, they may hold; 32 MiB.
	TombstoneBytes int64
	// TombstoneAge is for how long they are remembered; 24 h.
	TombstoneAge time.Duration
	// Now tells the time by which they age; time.Now.
	Now func() time.Time
	// FreshnessWait is how long reads wait for a revision that has not been reached; 3 s,
	// as Kubernetes' clients expect.
	FreshnessWait time.Duration
	// Decode makes an object from a stored value; nil means the resource's
	// own codec. value is shared and must not be modified; the result may
	// share it.
	Decode func(key string, value []byte, revision storage.Revision) (*Object, error)
}

func (o Options) withDefaults(res *resource.Resource) Options {
	o.HistoryEvents = cmp.Or(o.HistoryEvents, 32768)
	o.HistoryBytes = cmp.Or(o.HistoryBytes, 64<<20)
	o.BlockBytes = cmp.Or(o.BlockBytes, 160<<20)
	o.Tombstones = cmp.Or(o.Tombstones, 50_000)
	o.TombstoneBytes = cmp.Or(o.TombstoneBytes, 32<<20)
	o.TombstoneAge = cmp.Or(o.TombstoneAge, 24*time.Hour)
	o.FreshnessWait = cmp.Or(o.FreshnessWait, 3*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Decode == nil {
		o.Decode = decoder(res)
	}
	return o
}

// decoder makes objects with the resource's codec.
func decoder(res *resource.Resource) func(string, []byte, storage.Revision) (*Object, error) {
	return func(key string, value []byte, revision storage.Revision) (*Object, error) {
		json, err := res.WithRevision(value, int64(revision))
		if err != nil {
			return nil, err
		}
		attributes, err := res.Attributes(json)
		if err != nil {
			return nil, err
		}
		if is := res.Key(attributes.Namespace, attributes.Name); is != key {
			return nil, fmt.Errorf("the object under key %q says that it is %q", key, is)
		}
		return NewObject(key, revision, attributes, json)
	}
}
