package relay

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// BenchmarkConsistentRead lists through a relay a resource in which nothing changes, each time
// after a change of another one, and says what that costs both servers and the client in this
// process, and what goes over the relay's connections to the upstream.
// Without progress requests it does what it does at kube-apiserver.
func BenchmarkConsistentRead(b *testing.B) {
	for name, wrap := range map[string]transport.WrapperFunc{
		"ProgressRequests": nil, "SecondWatches": func(next http.RoundTripper) http.RoundTripper { return unnamed{next} },
	} {
		b.Run(name, func(b *testing.B) { benchmarkConsistentRead(b, wrap) })
	}
}

// unnamed sends requests without the names of streams.
type unnamed struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (u unnamed) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Levelwire-Progress") != "" {
		req = req.Clone(req.Context())
		req.Header.Del("Levelwire-Progress")
	}
	return u.next.RoundTrip(req)
}

func benchmarkConsistentRead(b *testing.B, wrap transport.WrapperFunc) {
	upstream := levelwiretest.Start(b)
	config := upstream.Config()
	if wrap != nil {
		config.Wrap(wrap)
	}
	var carried atomic.Int64 // bytes, in both directions
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return countedConn{conn, &carried}, err
	}
	relay := levelwiretest.Start(b, func(c *server.Config) {
		c.Relay = &server.Relay{Config: config}
	})
	changed := client.For[*corev1.ConfigMap](upstream.Client(client.Options{})).Namespace("default")
	object, err := changed.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "changed"}}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	listed := client.For[*corev1.Secret](relay.Client(client.Options{})).Namespace("default")
	if _, err := listed.List(b.Context(), metav1.ListOptions{}); err != nil {
		b.Fatal(err)
	}
	var spent, writing time.Duration
	var bytes, reads int64
	for b.Loop() {
		begin := processorTime(b)
		object.Data = map[string]string{"n": fmt.Sprint(reads)}
		if object, err = changed.Update(b.Context(), object, metav1.UpdateOptions{}); err != nil {
			b.Fatal(err)
		}
		written, before := processorTime(b), carried.Load()
		if _, err := listed.List(b.Context(), metav1.ListOptions{}); err != nil {
			b.Fatal(err)
		}
		writing += written - begin
		spent += processorTime(b) - written
		bytes += carried.Load() - before
		reads++
	}
	b.ReportMetric(float64(spent.Microseconds())/float64(reads), "cpu-µs/read")
	b.ReportMetric(float64(writing.Microseconds())/float64(reads), "cpu-µs/write")
	b.ReportMetric(float64(bytes)/float64(reads), "upstream-B/read")
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// countedConn counts what it carries.
type countedConn struct {
	net.Conn
	carried *atomic.Int64
}

// Read implements net.Conn.
func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.carried.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.carried.Add(int64(n))
	return n, err
}
