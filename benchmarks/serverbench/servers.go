package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	peer "github.com/levelwire/levelwire/tests/peers/upstream"
)

// startServer starts the server of a side on the data of a folder, and waits
// until its cache is filled.
func (b *bench) startServer(ctx context.Context, side, dir string, objects int) (*testedServer, error) {
	t := &testedServer{side: side, objects: objects}
	if err := b.launch(ctx, t, dir); err != nil {
		return nil, err
	}
	return t, nil
}

// launch starts the processes of a server that are not running. If it fails,
// none is.
func (b *bench) launch(ctx context.Context, t *testedServer, dir string) error {
	begin := map[string]func(context.Context, *testedServer, string) (time.Time, error){ours: b.startOurs, upstream: b.startUpstream}[t.side]
	if begin == nil {
		return fmt.Errorf("there is no side %q, only %s and %s", t.side, ours, upstream)
	}
	begun, err := begin(ctx, t, dir)
	if err == nil {
		err = t.awaitCache(ctx)
		t.ready = time.Since(begun)
	}
	if err != nil {
		t.kill()
	}
	return err
}

// startOurs runs `levelwire serve` with its defaults, which are embedded etcd,
// fsync and TLS.
func (b *bench) startOurs(ctx context.Context, t *testedServer, dir string) (time.Time, error) {
	args := append([]string{"serve", "--data-dir", dir, "--secure-port", strconv.Itoa(t.port), "--log-level", "warn"}, t.flags...)
	if b.plan.profiles != "" {
		args = append(args, "--profiling")
	}
	begun := time.Now()
	c, stdout, err := process.Execute(ctx, b.dir, ours, exec.CommandContext(ctx, b.plan.levelwire, args...))
	if err != nil {
		return begun, err
	}
	t.processes = append(t.processes, c)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return begun, c.Because(fmt.Errorf("it did not become ready: %w", err))
		}
		if strings.Contains(line, " is ready at ") {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // a pipe that is not read would block it
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig"))
	if err != nil {
		return begun, err
	}
	t.access = access{URL: config.Host, CA: config.CAData, Cert: config.CertData, Key: config.KeyData}
	return begun, nil
}

// peerTask is where the peer's data are; the etcd in use is an answer of its
// process.
type peerTask struct {
	Dir, Etcd string
	Port      int // 0: any
}

// startUpstream runs the peer's etcd, unless it runs already, and then its API
// server.
func (b *bench) startUpstream(ctx context.Context, t *testedServer, dir string) (time.Time, error) {
	if len(t.processes) == 0 {
		store, err := process.Start(ctx, b.dir, "etcd", peerTask{Dir: etcdDir(upstream, dir)})
		if store == nil {
			return time.Time{}, err
		}
		t.processes = append(t.processes, store)
		if err := errors.Join(err, store.Receive(&t.etcd)); err != nil {
			return time.Time{}, err
		}
	}
	// What etcd needs for its own start is not counted against upstream.
	var err error
	if t.before, err = t.cpu(); err != nil {
		return time.Time{}, err
	}
	begun := time.Now()
	api, err := process.Start(ctx, b.dir, "peer", peerTask{Dir: filepath.Join(dir, "certificates"), Etcd: t.etcd, Port: t.port})
	if api == nil {
		return begun, err
	}
	t.processes = append([]*process.Child{api}, t.processes...)
	return begun, errors.Join(err, api.Receive(&t.access))
}

// serveEtcd is the peer's etcd: durable, and a process of its own, as in
// production.
func serveEtcd(ctx context.Context, p *process.Parent) error {
	var task peerTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	store, err := peer.StartEtcd(ctx, peer.EtcdOptions{DataDir: task.Dir, Fsync: true})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := p.Send(store.Endpoint()); err != nil {
		return err
	}
	return p.Wait()
}

// servePeer is the API server of the upstream libraries.
func servePeer(ctx context.Context, p *process.Parent) error {
	var task peerTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	if err := os.MkdirAll(task.Dir, 0o700); err != nil {
		return err
	}
	options := peer.Options{Etcd: task.Etcd, CertDir: task.Dir, Protobuf: true}
	if task.Port != 0 {
		options.Address = fmt.Sprintf("127.0.0.1:%d", task.Port)
	}
	s, err := peer.Start(ctx, options)
	if err != nil {
		return err
	}
	config := s.Config()
	if err := p.Send(access{URL: config.Host, CA: config.CAData}); err != nil {
		return err
	}
	return errors.Join(p.Wait(), s.Stop())
}
