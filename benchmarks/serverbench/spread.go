package main

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

// spreadTask is what the bare server of a fan-out is to do.
type spreadTask struct {
	Conns, PerConn int
	Bytes          int     // of an event
	Rate           float64 // updates per second: each is sent PerConn times on each connection
	Duration       time.Duration
	Address        string
	CA             []byte // for the other end
}

// bare sends the same number of bytes over the same number of connections by a
// server that does nothing but write them to TLS.
func (f fanOut) bare(ctx context.Context, b *bench, our result) (result, error) {
	task := spreadTask{
		Conns: max(f.watchers/f.perConn, 1), PerConn: f.perConn, Bytes: int(our.Values[eventBytes]),
		Rate: fanRate / float64(f.watchers), Duration: fanFor / 2,
	}
	if task.Bytes == 0 {
		task.Bytes = writtenBytes // Ours has not delivered all, and so has not said it.
	}
	server, err := process.Start(ctx, b.dir, "spread", task)
	if server == nil {
		return result{}, err
	}
	defer server.Kill()
	var at tested.Access
	if err := errors.Join(err, server.Receive(&at)); err != nil {
		return result{}, err
	}
	task.Address, task.CA = at.URL, at.CA
	client, err := process.Start(ctx, b.dir, "drain", task)
	if client == nil {
		return result{}, err
	}
	defer client.Kill()
	var used time.Duration
	if err := errors.Join(err, server.Receive(&used)); err != nil {
		return result{}, err
	}
	updates := float64(int(task.Rate * task.Duration.Seconds()))
	return result{Values: map[string]float64{cpuPerEvent: micros(used) / updates / float64(task.Conns*task.PerConn)}}, nil
}

// spread is the process of the bare server. It sends what a client needs to
// connect, and then what processor time its writing took.
func spread(ctx context.Context, p *process.Parent) error {
	var task spreadTask
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
func (task spreadTask) send(ctx context.Context, conns []net.Conn) (time.Duration, error) {
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

// drain is the process of the bare server's clients.
func drain(ctx context.Context, p *process.Parent) error {
	var task spreadTask
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
