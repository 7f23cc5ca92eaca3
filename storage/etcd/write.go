package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/levelwire/levelwire/storage"
)

// Create implements storage.Writer.
func (s *Store) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	return s.put(ctx, key, value, 0, ttl)
}

// Update implements storage.Writer.
func (s *Store) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	if expect <= 0 {
		return 0, fmt.Errorf("update of %s: the expected revision is %d, it must be above zero", key, expect)
	}
	return s.put(ctx, key, value, expect, ttl)
}

// Delete implements storage.Writer.
func (s *Store) Delete(ctx context.Context, key string, expect storage.Revision) (storage.Revision, error) {
	if expect <= 0 {
		return 0, fmt.Errorf("delete of %s: the expected revision is %d, it must be above zero", key, expect)
	}
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.calls.RUnlock()
	return s.guarded(ctx, key, expect, clientv3.OpDelete(key))
}

func (s *Store) put(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.calls.RUnlock()
	if ttl <= 0 {
		return s.guarded(ctx, key, expect, clientv3.OpPut(key, string(value)))
	}
	for attempt := 0; ; attempt++ {
		lease, err := s.leases.covering(ctx, ttl)
		if err != nil {
			return 0, s.fail(ctx, err)
		}
		rev, err := s.guarded(ctx, key, expect, clientv3.OpPut(key, string(value), clientv3.WithLease(lease)))
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) || attempt > 0 {
			return rev, err
		}
		// Somebody revoked the lease, or it ran out while etcd was away.
		s.leases.forget(lease)
	}
}

// guarded does op on key if the key's last change is expect, 0 meaning that it
// does not exist; and reads the key if not, in the same transaction.
func (s *Store) guarded(ctx context.Context, key string, expect storage.Revision, op clientv3.Op) (storage.Revision, error) {
	resp, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", int64(expect))).
		Then(op).
		Else(clientv3.OpGet(key)).
		Commit()
	if err != nil {
		return 0, s.fail(ctx, err)
	}
	if resp.Succeeded {
		return storage.Revision(resp.Header.Revision), nil
	}
	conflict := &storage.ConflictError{Key: key, Expect: expect}
	if found := resp.Responses[0].GetResponseRange(); found != nil && len(found.Kvs) > 0 {
		kv := keyValue(found.Kvs[0])
		conflict.Current = &kv
	}
	return 0, conflict
}

func keyValue(kv *mvccpb.KeyValue) storage.KeyValue {
	return storage.KeyValue{Key: string(kv.Key), Value: kv.Value, Modified: storage.Revision(kv.ModRevision)}
}
