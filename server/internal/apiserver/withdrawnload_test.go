package apiserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/auth"
)

var withdrawnWatches = flag.Int("withdrawn.watches", 10_000, "how many watches TestManyWithdrawnRights ends at once")

// TestManyWithdrawnRights ends thousands of watches of 100 users by the deletion of one
// binding, while those of another user go on. Once their rights are decided about, no watch is
// sent an event that is written then, whether the watch has ended by then or not. How soon that
// is depends on what else the machine does, and is logged; what the server waits for
// is tested in package reauthorization.
func TestManyWithdrawnRights(t *testing.T) {
	const users = 100
	const streams = 100 // of a connection
	tokens := map[string]auth.User{testToken: {Name: "root", Groups: []string{auth.Masters}}, "keeper": {Name: "keeper"}}
	for i := range users {
		tokens[fmt.Sprint("user", i)] = auth.User{Name: fmt.Sprint("user", i), Groups: []string{"watchers"}}
	}
	c := rbacCluster(t, nil, func(s *setup) { s.config.Tokens = auth.NewStaticTokens(tokens) })
	c.bind("", "watcher", "keeper")
	c.createRBAC("clusterrolebindings", &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "watcher-watchers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "watcher"},
		Subjects:   []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "watchers"}},
	})
	events := c.server.metrics.Events.WithLabelValues("", "v1", "pods")
	gauge := c.server.metrics.Watches.WithLabelValues("", "v1", "pods")
	var clients sync.WaitGroup
	defer clients.Wait()
	got := received{watches: int64(*withdrawnWatches), event: make(chan struct{}), ended: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for i := range *withdrawnWatches / streams {
		conn := c.openStreams(fmt.Sprint("user", i%users), streams)
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		clients.Go(func() { got.read(conn) })
	}
	keeper := c.watch("/api/v1/pods?watch=1&resourceVersion=1", asUser("keeper"))
	testwait.Stable(t, "the watches are open", func() (any, bool) { seen := gaugeValue(t, gauge); return seen, seen == float64(*withdrawnWatches+1) })
	rev := c.put(testPod("a", "before", nil, ""))
	keeper.want(fmt.Sprint("ADDED before@", rev))
	await(t, "the watches did not get the event", got.event)
	if n := c.server.open.Groups(); n != min(users, *withdrawnWatches/streams)+1 {
		t.Errorf("%d different rights", n)
	}

	used, start := usage(t), time.Now()
	c.unbind("", "watcher", "watchers")
	defer func() {
		if t.Failed() {
			t.Logf("%d of %d watches got the error; %v are open, of %d rights", got.errors.Load(), *withdrawnWatches, gaugeValue(t, gauge), c.server.open.Groups())
		}
	}()
	early := c.put(testPod("a", "early", nil, "")) // is being sent while it is decided about the rights
	testwait.Stable(t, "the rights are decided about", func() (any, bool) { seen := c.server.open.Groups(); return seen, seen == 1 })
	decided, sent := time.Since(start), counterValue(t, events)
	late := c.put(testPod("a", "late", nil, ""))
	keeper.want(fmt.Sprint("ADDED early@", early), fmt.Sprint("ADDED late@", late))
	await(t, "the watches were not ended", got.ended)
	t.Logf("%d rights were decided about after %s, when %v events were sent; %d watches ended after %s, with %s of processor time, their clients' included",
		users, decided.Round(time.Millisecond), sent, *withdrawnWatches, time.Since(start).Round(time.Millisecond), (usage(t) - used).Round(time.Millisecond))
	testwait.Stable(t, "ended watches are closed", func() (any, bool) { seen := gaugeValue(t, gauge); return seen, seen == 1 })
	if n := got.errors.Load(); n != int64(*withdrawnWatches) {
		t.Errorf("%d watches got the error", n)
	}
	if n := got.late.Load(); n != 0 {
		t.Errorf("%d watches were sent an event that was written after their rights had been withdrawn", n)
	}
}

// await waits for a channel to be closed, without a share in the processor.
func await(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(3 * time.Minute):
		t.Fatal(what)
	}
}

// openStreams opens watches of a user on one connection.
func (c *cluster) openStreams(user string, streams int) net.Conn {
	c.t.Helper()
	config := c.http2.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{http2.NextProtoTLS}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(c.url, "https://"), config)
	must(c.t, err)
	_, err = io.WriteString(conn, http2.ClientPreface)
	must(c.t, err)
	framer := http2.NewFramer(conn, conn)
	must(c.t, framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: hugeWindow}))
	must(c.t, framer.WriteWindowUpdate(0, hugeWindow))
	requests := newRawRequests(framer)
	requests.token = user
	for range streams {
		must(c.t, requests.write([2]string{":authority", "levelwire"}, [2]string{":path", "/api/v1/pods?watch=1&resourceVersion=1"}))
	}
	return conn
}

// received counts what the watches of a test got.
type received struct {
	watches                    int64
	events, errors, late, ends atomic.Int64
	event, ended               chan struct{} // closed when each watch got an event, and when each has ended
}

// read reads a connection until it is closed.
func (r *received) read(conn net.Conn) {
	framer := http2.NewFramer(conn, conn)
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.PingFrame:
			_ = framer.WritePing(true, f.Data) // the next read fails, if the connection is closed
		case *http2.DataFrame:
			r.late.Add(int64(bytes.Count(f.Data(), []byte(`"name":"late"`))))
			r.errors.Add(int64(bytes.Count(f.Data(), []byte(`the right was withdrawn`))))
			r.count(&r.events, bytes.Count(f.Data(), []byte(`{"type":"ADDED"`)), r.event)
		}
		if isEnd(f) {
			r.count(&r.ends, 1, r.ended)
		}
	}
}

func (r *received) count(counter *atomic.Int64, n int, all chan struct{}) {
	if n > 0 && counter.Add(int64(n)) == r.watches {
		close(all)
	}
}

// isEnd reports whether a frame is the last one of its stream.
func isEnd(f http2.Frame) bool {
	switch f := f.(type) {
	case *http2.DataFrame:
		return f.StreamEnded()
	case *http2.HeadersFrame:
		return f.StreamEnded()
	case *http2.RSTStreamFrame:
		return true
	}
	return false
}
