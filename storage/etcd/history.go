package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"

	"github.com/levelwire/levelwire/storage"
)

// Oldest implements storage.Historian.
func (s *Store) Oldest(ctx context.Context) (storage.Revision, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.calls.RUnlock()
	if s.local != nil {
		return max(storage.Revision(s.local.kv.FirstRev()), 1), nil
	}
	_, err := s.read(ctx, absentKey, clientv3.WithCountOnly(), clientv3.WithRev(1))
	switch {
	case err == nil:
		return 1, nil
	case !errors.Is(rpctypes.Error(err), rpctypes.ErrCompacted):
		return 0, s.fail(ctx, err)
	}
	return s.compacted(ctx)
}

// compacted asks a cluster to which revision it has been compacted. A read of an
// earlier revision fails without that number; a watch from there fails with it.
func (s *Store) compacted(ctx context.Context) (storage.Revision, error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for response := range s.client.Watch(ctx, absentKey, clientv3.WithRev(1), clientv3.WithCreatedNotify()) {
		if response.CompactRevision != 0 {
			return storage.Revision(response.CompactRevision), nil
		}
		if err := response.Err(); err != nil {
			return 0, s.fail(ctx, err)
		}
	}
	return 0, s.fail(ctx, errors.Join(ctx.Err(), errors.New("the watch that asks for the compacted revision ended")))
}

// Replay implements storage.Historian.
func (s *Store) Replay(ctx context.Context, prefix string, after, through storage.Revision, visit func([]storage.Event) error) error {
	current, err := s.Current(ctx)
	switch {
	case err != nil:
		return err
	case through > current:
		return storage.ErrFutureRevision
	case s.local != nil:
		return s.replayLocal(ctx, prefix, after, through, visit)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.Watch(ctx, prefix, after)
	if err != nil {
		return err
	}
	s.streams.requestProgress(through) // the range may have been quiet since long before
	for after < through {
		batch, err := stream.Next()
		if err != nil {
			return err
		}
		events := batch.Events
		for len(events) > 0 && events[len(events)-1].Revision > through {
			events = events[:len(events)-1]
		}
		if len(events) > 0 {
			if err := visit(events); err != nil {
				return err
			}
		}
		after = batch.Revision
	}
	return nil
}

// replayRun is how many revisions are read from the database at a time.
const replayRun = 1000

// replayLocal reads the member's own database. A watch of etcd would read everything
// after its start ten times a second, and block writes while it reads.
func (s *Store) replayLocal(ctx context.Context, prefix string, after, through storage.Revision, visit func([]storage.Event) error) error {
	for after < through {
		events, reached, err := s.replayOnce(ctx, prefix, after, through)
		if err != nil {
			return err
		}
		after = reached
		if len(events) == 0 {
			continue
		}
		if err := visit(events); err != nil {
			return err
		}
	}
	return nil
}

// replayOnce returns the changes of the next replayRun revisions after a revision,
// and the last of these revisions.
func (s *Store) replayOnce(ctx context.Context, prefix string, after, through storage.Revision) ([]storage.Event, storage.Revision, error) {
	if err := s.enter(ctx); err != nil {
		return nil, 0, err
	}
	defer s.calls.RUnlock()
	reached := min(after+replayRun, through)
	events, err := s.local.changes(prefix, after, reached)
	if err != nil {
		return nil, 0, err
	}
	// Checked after the read: if after is not compacted now, it was not then.
	if first := storage.Revision(s.local.kv.FirstRev()); after < first-1 {
		return nil, 0, storage.ErrCompacted
	}
	return events, reached, nil
}

// changes returns the changes in (after, through]. The database keeps each change
// under its revision as the key.
func (l *localMember) changes(prefix string, after, through storage.Revision) ([]storage.Event, error) {
	from := mvcc.RevToBytes(mvcc.Revision{Main: int64(after) + 1}, mvcc.NewRevBytes())
	end := mvcc.RevToBytes(mvcc.Revision{Main: int64(through) + 1}, mvcc.NewRevBytes())
	tx := l.database.ConcurrentReadTx()
	tx.RLock()
	defer tx.RUnlock()
	// The values are the database's own memory until the transaction ends. The
	// changes that are not committed yet follow the committed ones. etcd may take
	// them from a buffer older than the last commit: then some committed changes come
	// twice, which does not matter to etcd's own reads of single keys.
	keys, values := tx.UnsafeRange(schema.Key, from, end, 0)
	var events []storage.Event
	var last []byte
	for i := range values {
		if bytes.Compare(keys[i], last) <= 0 {
			continue
		}
		last = keys[i]
		var kv mvccpb.KeyValue
		if err := proto.Unmarshal(values[i], &kv); err != nil {
			return nil, fmt.Errorf("the change at revision %d in etcd's database: %w", mvcc.BytesToRev(keys[i]).Main, err)
		}
		if key := string(kv.Key); strings.HasPrefix(key, prefix) {
			event := storage.Event{Key: key, Revision: storage.Revision(mvcc.BytesToRev(keys[i]).Main), Deleted: mvcc.IsTombstone(keys[i])}
			if !event.Deleted {
				event.Value = kv.Value
			}
			events = append(events, event)
		}
	}
	return events, nil
}
