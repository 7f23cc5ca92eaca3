package etcd

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// TestConnectsAgainSoon: a cluster that could not be reached for hours is noticed soon when it
// can be. gRPC's own delays would be two minutes by then.
func TestConnectsAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		away := begun.Add(2 * time.Hour)
		member := newPipeListener()
		server := grpc.NewServer()
		pb.RegisterKVServer(server, &fakeMember{})
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(member) }()

		last, longest := begun, time.Duration(0)
		config := Config{Endpoints: []string{"http://member"}}
		clientConfig, err := config.client()
		if err != nil {
			t.Fatal(err)
		}
		clientConfig.DialOptions = append(clientConfig.DialOptions, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			now := time.Now()
			last, longest = now, max(longest, now.Sub(last))
			if now.Before(away) {
				return nil, errors.New("there is no route to the member")
			}
			return member.dial(ctx)
		}))
		client, err := clientv3.New(clientConfig)
		if err != nil {
			t.Fatal(err)
		}
		if err := config.await(t.Context(), client); err != nil {
			t.Error(err)
		}
		// gRPC varies its delays by a fifth.
		if most := connectPatience * 6 / 5; longest > most || last.Before(away) {
			t.Errorf("two attempts to connect were %v apart, want %v at most; the last was after %v", longest, most, last.Sub(begun))
		}
		if late := time.Since(away); late > 2*connectPatience {
			t.Errorf("connected %v after the cluster could be reached", late)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// pipeListener accepts connections in memory, which fake time knows of.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeListener) Close() error {
	close(l.closed)
	return nil
}

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "member", Net: "unix"} }
