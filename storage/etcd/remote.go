package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/status"
)

// How requests to a cluster go on while some of its members do not. The client sends
// requests to the members in turns, so another attempt mostly goes to another member.
const (
	// A read that a member has not answered after readPatience is sent again. Each further
	// attempt has twice the time, up to maxReadPatience, because all members may be slow.
	readPatience    = 500 * time.Millisecond
	maxReadPatience = 8 * time.Second
	// A write that a member has refused, because it knows no leader, is sent again for
	// refusalPatience, which is longer than an election takes.
	refusalPatience = 4 * time.Second
	refusalDelay    = 20 * time.Millisecond // before the next attempt
	// connectPatience is how long a connection may take, and the longest time between two
	// attempts to connect to a member. The latter is what a cluster that was unreachable
	// for minutes is noticed late by; gRPC's own is two minutes.
	connectPatience = 2 * time.Second
)

// connectParams are for connections to members that come back.
func connectParams() grpc.DialOption {
	delays := backoff.DefaultConfig
	delays.BaseDelay, delays.MaxDelay = 200*time.Millisecond, connectPatience
	return grpc.WithConnectParams(grpc.ConnectParams{Backoff: delays, MinConnectTimeout: connectPatience})
}

// remoteCommitter sends transactions as the client would: with its credentials, and not
// again when the outcome of one is unknown. One that a member has surely not proposed to the
// others is sent again.
func remoteCommitter(client *clientv3.Client) committer {
	kv := clientv3.RetryKVClient(client)
	return func(ctx context.Context, request *pb.TxnRequest) (*pb.TxnResponse, error) {
		ctx = clientv3.WithRequireLeader(ctx)
		begun := time.Now()
		for {
			response, err := kv.Txn(ctx, request, grpc.MaxCallSendMsgSize(maxSendBytes), grpc.MaxCallRecvMsgSize(math.MaxInt32))
			if err == nil || !isUnproposed(err) || time.Since(begun) > refusalPatience || !pause(ctx, refusalDelay) {
				return response, err
			}
		}
	}
}

// isUnproposed reports whether a member has refused a write before it could take effect: it
// knows no leader, or it hands the leadership over.
func isUnproposed(err error) bool {
	return errors.Is(rpctypes.Error(err), rpctypes.ErrNoLeader) || isDropped(err)
}

// isDropped recognizes raft.ErrProposalDropped, for which etcd has no code. Only the member
// that was asked sends it: a leader that drops a proposal of another member does not say so.
func isDropped(err error) bool {
	return err != nil && strings.Contains(status.Convert(err).Message(), "raft proposal dropped")
}

// pause returns false if ctx ends meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// read asks for a key, or for few. Of a cluster it asks another member if one does not answer.
func (s *Store) read(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if s.embedded {
		return s.client.Get(ctx, key, opts...)
	}
	ctx = clientv3.WithRequireLeader(ctx)
	for patience := readPatience; ; patience = min(2*patience, maxReadPatience) {
		attempt, cancel := context.WithTimeout(ctx, patience)
		response, err := s.client.Get(attempt, key, opts...)
		late := attempt.Err() != nil
		cancel()
		if err == nil || !late || ctx.Err() != nil {
			return response, err
		}
	}
}

// ended is the error of a call whose context has.
func (s *Store) ended(ctx context.Context) error {
	if s.embedded || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return fmt.Errorf("etcd at %s has not answered in time: %w", strings.Join(s.client.Endpoints(), ", "), ctx.Err())
}
