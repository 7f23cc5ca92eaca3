package baretls

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/cert"

	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// bareWrite is how much the bare server gives to TLS at once: four records.
const bareWrite = 64 << 10

// Cost is what the transfer of bytes took: processor time on both sides, and time.
type Cost struct{ Server, Client, Took time.Duration }

// MeasureBytes measures what it costs a server that writes them from memory and
// does nothing else to send so many bytes to each of its clients.
func MeasureBytes(ctx context.Context, dir string, bytes int64, clients int) (found Cost, err error) {
	server, err := process.Start(ctx, dir, "bare", nil)
	if server == nil {
		return found, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	task := sinkTask{Bytes: bytes, Clients: clients}
	if err := errors.Join(err, server.Receive(&task.Access)); err != nil {
		return found, err
	}
	before, err := server.CPU()
	if err != nil {
		return found, err
	}
	var sunk sinkResult
	if err := process.Run(ctx, dir, "sink", task, &sunk); err != nil {
		return found, err
	}
	after, err := server.CPU()
	return Cost{Server: after - before, Client: sunk.CPU, Took: sunk.Took}, err
}

// Serve is a process that writes as many bytes to each connection as it is
// asked for.
func Serve(ctx context.Context, p *process.Parent) error {
	var nothing any
	if err := p.Receive(&nothing); err != nil {
		return err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			socket, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			serving.Go(func() {
				defer socket.Close()
				// What a client does not get, it complains of.
				_ = writeAsked(tls.Server(socket, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}))
			})
		}
	})
	if err := p.Send(tested.Access{URL: "https://" + listener.Addr().String(), CA: certificate}); err != nil {
		return err
	}
	err = p.Wait()
	err = errors.Join(err, listener.Close())
	serving.Wait()
	return err
}

// writeAsked reads a number and writes as many bytes.
func writeAsked(c net.Conn) error {
	var asked [8]byte
	if _, err := io.ReadFull(c, asked[:]); err != nil {
		return err
	}
	left := binary.BigEndian.Uint64(asked[:])
	block := make([]byte, bareWrite)
	for left > 0 {
		n, err := c.Write(block[:min(left, bareWrite)])
		if err != nil {
			return err
		}
		left -= uint64(n)
	}
	return nil
}

// sinkTask is how many bytes a process asks a bare server for.
type sinkTask struct {
	Access  tested.Access
	Bytes   int64
	Clients int
}

type sinkResult struct{ CPU, Took time.Duration }

// Sink is a process that reads from a bare server.
func Sink(ctx context.Context, p *process.Parent) error {
	var task sinkTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	config, err := task.Access.TLS()
	if err != nil {
		return err
	}
	where, err := url.Parse(task.Access.URL)
	if err != nil {
		return err
	}
	begun := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for range task.Clients {
		group.Go(func() error {
			c, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", where.Host)
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := c.Write(binary.BigEndian.AppendUint64(nil, uint64(task.Bytes))); err != nil {
				return err
			}
			n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(c, task.Bytes), make([]byte, 256<<10))
			if err == nil && n < task.Bytes {
				err = fmt.Errorf("the bare server sent %d bytes of %d", n, task.Bytes)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r := sinkResult{Took: time.Since(begun)}
	if r.CPU, err = measure.OwnCPU(); err != nil {
		return err
	}
	return p.Send(r)
}
