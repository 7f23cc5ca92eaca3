package baretls

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// joined is how many events the bare server writes at once to a connection that
// carries many watches: what a server reaches that finds ten of a connection's
// watches with something to send.
const joined = 10

// SpreadTask is what the bare server of a fan-out is to do.
type SpreadTask struct {
	Conns, PerConn int
	Bytes          int     // of an event
	Rate           float64 // updates per second: each is sent PerConn times on each connection
	Duration       time.Duration
	Address        string
	CA             []byte // for the other end
}

// MeasureSpread measures the processor time of a server that writes events to many
// connections and does nothing else.
func MeasureSpread(ctx context.Context, dir string, task SpreadTask) (time.Duration, error) {
	server, err := process.Start(ctx, dir, "spread", task)
	if server == nil {
		return 0, err
	}
	defer server.Kill()
	var at tested.Access
	if err := errors.Join(err, server.Receive(&at)); err != nil {
		return 0, err
	}
	task.Address, task.CA = at.URL, at.CA
	client, err := process.Start(ctx, dir, "drain", task)
	if client == nil {
		return 0, err
	}
	defer client.Kill()
	var used time.Duration
	err = errors.Join(err, server.Receive(&used))
	return used, err
}

// Spread is the process of the bare server. It sends what a client needs to
// connect, and then what processor time its writing took.
func Spread(ctx context.Context, p *process.Parent) error {
	var task SpreadTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	authority, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(authority, key)
	if err != nil {
		return err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	if err := p.Send(tested.Access{URL: l.Addr().String(), CA: authority}); err != nil {
		return err
	}
	var conns []net.Conn
	for range task.Conns {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.(*tls.Conn).HandshakeContext(ctx); err != nil {
			return err
		}
		conns = append(conns, c)
	}
	used, err := task.send(ctx, conns)
	if err != nil {
		return err
	}
	return errors.Join(p.Send(used), p.Wait())
}

// send writes all events at their rate.
func (task SpreadTask) send(ctx context.Context, conns []net.Conn) (time.Duration, error) {
	before, err := measure.OwnCPU()
	if err != nil {
		return 0, err
	}
	events := make([]byte, task.Bytes*min(joined, task.PerConn))
	for i := range events {
		events[i] = byte(i) // TLS does not mind what
	}
	begun := time.Now()
	for i := range int(task.Rate * task.Duration.Seconds()) {
		if err := tested.Pause(ctx, time.Until(begun.Add(time.Duration(float64(i)/task.Rate*float64(time.Second))))); err != nil {
			return 0, err
		}
		for _, c := range conns {
			for left := task.PerConn; left > 0; left -= joined {
				if _, err := c.Write(events[:task.Bytes*min(joined, left)]); err != nil {
					return 0, err
				}
			}
		}
	}
	after, err := measure.OwnCPU()
	return after - before, err
}

// Drain is the process of the bare server's clients.
func Drain(ctx context.Context, p *process.Parent) error {
	var task SpreadTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	config, err := tested.Access{CA: task.CA}.TLS()
	if err != nil {
		return err
	}
	config.NextProtos = nil
	for range task.Conns {
		c, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", task.Address)
		if err != nil {
			return fmt.Errorf("connect to the bare server: %w", err)
		}
		go func() { _, _ = io.Copy(struct{ io.Writer }{io.Discard}, c) }() // until the server ends
	}
	return p.Wait()
}
