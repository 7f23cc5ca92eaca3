package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/levelwire/levelwire/storage"
)

// fakeMember answers as its functions say; nil: as a member that is well.
type fakeMember struct {
	pb.UnimplementedKVServer
	url    string
	ranges func(context.Context) error
	txns   func(context.Context) error
	asked  atomic.Int64
}

func (m *fakeMember) Range(ctx context.Context, _ *pb.RangeRequest) (*pb.RangeResponse, error) {
	m.asked.Add(1)
	if m.ranges != nil {
		if err := m.ranges(ctx); err != nil {
			return nil, err
		}
	}
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 7}}, nil
}

func (m *fakeMember) Txn(ctx context.Context, _ *pb.TxnRequest) (*pb.TxnResponse, error) {
	m.asked.Add(1)
	if m.txns != nil {
		if err := m.txns(ctx); err != nil {
			return nil, err
		}
	}
	return &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: 8}, Succeeded: true}, nil
}

func (m *fakeMember) serve(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	m.url = "http://" + listener.Addr().String()
	server := grpc.NewServer()
	pb.RegisterKVServer(server, m)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// openMembers returns a store that is connected to all these members.
func openMembers(t *testing.T, members ...*fakeMember) *Store {
	t.Helper()
	var config Config
	for _, m := range members {
		m.serve(t, "127.0.0.1:0")
		config.Endpoints = append(config.Endpoints, m.url)
	}
	store, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	for slices.ContainsFunc(members, func(m *fakeMember) bool { return m.asked.Load() == 0 }) {
		if _, err := store.Current(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// TestReadsPassASilentMember: a member that is stopped, or cut off without a reset, costs the
// reads that it got a moment, not the time until its connection is given up.
func TestReadsPassASilentMember(t *testing.T) {
	var silent atomic.Bool
	deaf := &fakeMember{ranges: func(ctx context.Context) error {
		if silent.Load() {
			<-ctx.Done()
		}
		return ctx.Err()
	}}
	store := openMembers(t, deaf, &fakeMember{})
	silent.Store(true)
	for i := range 6 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if rev, err := store.Current(ctx); err != nil || rev != 7 {
			t.Errorf("read %d: %d, %v; asked %d times", i, rev, err, deaf.asked.Load())
		}
		if _, err := store.Get(ctx, "/a", 0); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("read %d: %v", i, err)
		}
		cancel()
	}
}

// TestWritesPassALeaderlessMember: writes that a member has surely not proposed go on at
// another one, and others do not.
func TestWritesPassALeaderlessMember(t *testing.T) {
	for name, test := range map[string]struct {
		refusal error
		passes  bool
	}{
		"no leader":           {rpctypes.ErrGRPCNoLeader, true},
		"leadership moves":    {status.Error(codes.Unknown, "raft proposal dropped"), true},
		"unknown outcome":     {rpctypes.ErrGRPCTimeout, false},
		"leader lost":         {rpctypes.ErrGRPCTimeoutDueToLeaderFail, false},
		"connection was lost": {status.Error(codes.Unavailable, "error reading from server: EOF"), false},
	} {
		t.Run(name, func(t *testing.T) {
			var proposed atomic.Int64
			lost := &fakeMember{txns: func(ctx context.Context) error {
				if asked, _ := metadata.FromIncomingContext(ctx); len(asked.Get(rpctypes.MetadataRequireLeaderKey)) == 0 {
					return errors.New("a member without a leader would keep this write for seconds")
				}
				return test.refusal
			}}
			store := openMembers(t, lost, &fakeMember{txns: func(context.Context) error { proposed.Add(1); return nil }})
			failed := 0
			for i := range 10 {
				_, err := store.Create(t.Context(), fmt.Sprintf("/%d", i), nil, 0)
				if err != nil && !errors.Is(err, storage.ErrUnavailable) {
					t.Error(err)
				}
				if err != nil {
					failed++
				}
			}
			if test.passes != (failed == 0) {
				t.Errorf("%d of 10 writes failed", failed)
			}
			if n := proposed.Load(); n != int64(10-failed) {
				t.Errorf("%d writes were proposed, and %d acknowledged", n, 10-failed)
			}
		})
	}
}

// TestErrorsSayWhichEtcd: what a server's /readyz shows when its etcd does not answer.
func TestErrorsSayWhichEtcd(t *testing.T) {
	var silent atomic.Bool
	m := &fakeMember{ranges: func(ctx context.Context) error {
		if silent.Load() {
			<-ctx.Done()
		}
		return ctx.Err()
	}}
	store := openMembers(t, m)
	silent.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) //passes: the member never answers
	defer cancel()
	_, err := store.Current(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), m.url) {
		t.Errorf("the error is %v; it must say that %s did not answer", err, m.url)
	}
}
