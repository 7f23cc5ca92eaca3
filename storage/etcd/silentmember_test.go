package etcd

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/levelwire/levelwire/storage"
)

// watchedMember is a member that answers reads, and watches as its cluster says.
type watchedMember struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer
	cluster  *watchedCluster
	listener *pipeListener
}

// watchedCluster are members in memory. One of them may be silent on its watches, though its connections are well: the
// one that gets the first watch.
type watchedCluster struct {
	silent   bool  // whether there is such a member
	confirms bool  // whether that one confirms a watch before
	revision int64 // of all members
	event    bool  // whether the others have an event of that revision

	members map[string]*watchedMember

	mu      sync.Mutex
	watches []*watchedMember // that got one each
}

// watched counts a watch, and reports whether the member says nothing on it.
func (c *watchedCluster) watched(m *watchedMember) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches = append(c.watches, m)
	return c.silent && m == c.watches[0]
}

// left reports how many watches there were, and whether the last went to another member than the first.
func (c *watchedCluster) left() (watches int, elsewhere bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.watches)
	return n, n > 0 && c.watches[n-1] != c.watches[0]
}

func (m *watchedMember) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: m.cluster.revision}}, nil
}

func (m *watchedMember) Watch(w pb.Watch_WatchServer) error {
	silent := m.cluster.watched(m)
	header := &pb.ResponseHeader{Revision: m.cluster.revision}
	for {
		request, err := w.Recv()
		if err != nil {
			return nil // the client has left
		}
		var answers []*pb.WatchResponse
		switch {
		case request.GetCreateRequest() != nil:
			if !silent || m.cluster.confirms {
				answers = append(answers, &pb.WatchResponse{Header: header, Created: true})
			}
			if !silent && m.cluster.event {
				event := &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte("/a/1"), Value: []byte("1"), ModRevision: m.cluster.revision}}
				answers = append(answers, &pb.WatchResponse{Header: header, Events: []*mvccpb.Event{event}})
			}
		case request.GetProgressRequest() != nil && !silent:
			answers = append(answers, &pb.WatchResponse{Header: header})
		}
		for _, answer := range answers {
			if err := w.Send(answer); err != nil {
				return err
			}
		}
	}
}

// serve starts the members and connects a store to all of them, until the returned function is called.
func (c *watchedCluster) serve(t *testing.T) (store *Store, stop func()) {
	ended := make(chan error)
	var servers []*grpc.Server
	c.members = map[string]*watchedMember{}
	var config Config
	for _, name := range []string{"one", "two"} {
		m := &watchedMember{cluster: c, listener: newPipeListener()}
		c.members[name] = m
		config.Endpoints = append(config.Endpoints, "http://"+name)
		// As etcd does, it accepts a ping every 5 seconds.
		server := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}))
		pb.RegisterKVServer(server, m)
		pb.RegisterWatchServer(server, m)
		servers = append(servers, server)
		go func() { ended <- server.Serve(m.listener) }()
	}
	clientConfig, err := config.client()
	if err != nil {
		t.Fatal(err)
	}
	clientConfig.DialOptions = append(clientConfig.DialOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		name, _, _ := strings.Cut(strings.TrimPrefix(address, "http://"), ":")
		return c.members[name].listener.dial(ctx)
	}))
	if store, err = config.connect(t.Context(), clientConfig); err != nil {
		t.Fatal(err)
	}
	return store, func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		for _, server := range servers {
			server.Stop()
		}
		for range servers {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
}

// TestStreamsLeaveASilentMember: a stream leaves a member that does not confirm its watch, or that says nothing while
// an event or a progress notification is due, and goes on at another one. The connection is well all the time, so that
// nothing else would find the silence.
func TestStreamsLeaveASilentMember(t *testing.T) {
	for name, test := range map[string]struct {
		cluster  *watchedCluster
		patience time.Duration
	}{
		"does not confirm":  {&watchedCluster{silent: true, event: true}, confirmPatience},
		"misses an event":   {&watchedCluster{silent: true, confirms: true, event: true}, watchPatience},
		"makes no progress": {&watchedCluster{silent: true, confirms: true}, watchPatience},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := test.cluster
				c.revision = 8
				store, stop := c.serve(t)
				defer stop()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				stream, err := store.Watch(ctx, "/a/", 7)
				if err != nil {
					t.Fatal(err)
				}
				// From now on the stream has to reach revision 8.
				if rev, err := store.Current(t.Context()); err != nil || rev != 8 {
					t.Fatal(rev, err)
				}
				begun := time.Now()
				batch, err := stream.Next()
				if err != nil || batch.Revision != 8 || len(batch.Events) == 1 != c.event {
					t.Errorf("the stream got %v, %v", batch, err)
				}
				if watches, elsewhere := c.left(); !elsewhere {
					t.Errorf("the stream was opened %d times, and last at the silent member", watches)
				}
				// The other member may be asked second only after the silent one was asked again.
				if after := time.Since(begun); after < test.patience || after > 4*test.patience {
					t.Errorf("the stream went on after %v, and a member may be silent for %v", after, test.patience)
				}
			})
		})
	}
}

// TestStreamsStayAtAQuietMember: a member on whose watch nothing is due is not left, however long it says nothing, nor
// is one that confirms that there is nothing.
func TestStreamsStayAtAQuietMember(t *testing.T) {
	for name, cluster := range map[string]*watchedCluster{
		"nothing is due":       {silent: true, confirms: true, revision: 7},
		"progress is notified": {revision: 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, stop := cluster.serve(t)
				stream, err := store.Watch(t.Context(), "/a/", 7)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := store.Current(t.Context()); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error)
				go func() {
					for {
						if _, err := stream.Next(); err != nil {
							ended <- err
							return
						}
					}
				}()
				time.Sleep(time.Minute)
				if watches, _ := cluster.left(); watches != 1 {
					t.Errorf("the stream was opened %d times in a minute, want once", watches)
				}
				go stop()
				if err := <-ended; !errors.Is(err, storage.ErrClosed) {
					t.Error(err)
				}
			})
		})
	}
}
