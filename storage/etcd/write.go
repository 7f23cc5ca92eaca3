package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

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
	if err := s.reserve.AdmitDelete(); err != nil {
		return 0, err
	}
	request := &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key)}}}
	return s.guarded(ctx, key, expect, request)
}

func (s *Store) put(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.calls.RUnlock()
	if err := s.reserve.AdmitPut(len(value)); err != nil {
		return 0, err
	}
	put := &pb.PutRequest{Key: []byte(key), Value: value}
	request := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}}
	if ttl <= 0 {
		return s.guarded(ctx, key, expect, request)
	}
	for attempt := 0; ; attempt++ {
		lease, err := s.leases.covering(ctx, ttl)
		if err != nil {
			return 0, s.fail(ctx, err)
		}
		put.Lease = int64(lease)
		rev, err := s.guarded(ctx, key, expect, request)
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) || attempt > 0 {
			return rev, err
		}
		// The lease was revoked, or it expired while etcd was unavailable.
		s.leases.forget(lease)
	}
}

// guarded does op on key if the revision of the key's last change is expect, 0
// meaning that it does not exist. If not, it reads the key in the same transaction
// and returns a ConflictError.
func (s *Store) guarded(ctx context.Context, key string, expect storage.Revision, op *pb.RequestOp) (storage.Revision, error) {
	resp, err := s.commit(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{{
			Key: []byte(key), Target: pb.Compare_MOD, Result: pb.Compare_EQUAL,
			TargetUnion: &pb.Compare_ModRevision{ModRevision: int64(expect)},
		}},
		Success: []*pb.RequestOp{op},
		Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(key)}}}},
	})
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
	return storage.KeyValue{
		Key: string(kv.Key), Value: kv.Value, Modified: storage.Revision(kv.ModRevision), Created: storage.Revision(kv.CreateRevision),
	}
}
