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
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	peer "github.com/levelwire/levelwire/tests/upstream"
)

// startTarget starts the server of a side on the data of a folder, and waits
// until its cache is filled.
func (b *bench) startTarget(ctx context.Context, side, dir string, objects int) (*target, error) {
	t := &target{side: side, objects: objects}
	begin := map[string]func(context.Context, *target, string) (time.Time, error){ours: b.startOurs, upstream: b.startUpstream}[side]
	if begin == nil {
		return nil, fmt.Errorf("there is no side %q, only %s and %s", side, ours, upstream)
	}
	begun, err := begin(ctx, t, dir)
	if err == nil {
		err = t.awaitCache(ctx)
		t.ready = time.Since(begun)
	}
	if err != nil {
		for _, p := range t.processes {
			p.kill()
		}
		return nil, err
	}
	return t, nil
}

// startOurs runs `levelwire serve` with its defaults, which are embedded etcd,
// fsync and TLS.
func (b *bench) startOurs(ctx context.Context, t *target, dir string) (time.Time, error) {
	args := []string{"serve", "--data-dir", dir, "--secure-port", "0", "--log-level", "warn"}
	if b.plan.profiles != "" {
		args = append(args, "--profiling")
	}
	begun := time.Now()
	c, stdout, err := b.execute(ctx, ours, exec.CommandContext(ctx, b.plan.levelwire, args...))
	if err != nil {
		return begun, err
	}
	t.processes = append(t.processes, c)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return begun, c.because(fmt.Errorf("it did not become ready: %w", err))
		}
		if strings.Contains(line, " is ready at ") {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // a pipe that nobody reads would hold it up
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig"))
	if err != nil {
		return begun, err
	}
	t.access = access{URL: config.Host, CA: config.CAData, Cert: config.CertData, Key: config.KeyData}
	return begun, nil
}

// peerTask is where the peer's data are; the etcd in use is an answer of its
// process.
type peerTask struct{ Dir, Etcd string }

// startUpstream runs the peer's etcd, and then its API server.
func (b *bench) startUpstream(ctx context.Context, t *target, dir string) (time.Time, error) {
	store, err := b.start(ctx, "etcd", peerTask{Dir: etcdDir(upstream, dir)})
	if store == nil {
		return time.Time{}, err
	}
	t.processes = append(t.processes, store)
	var endpoint string
	if err := errors.Join(err, store.receive(&endpoint)); err != nil {
		return time.Time{}, err
	}
	// What etcd needs for its own start is not counted against upstream.
	if t.before, err = store.cpu(); err != nil {
		return time.Time{}, err
	}
	begun := time.Now()
	api, err := b.start(ctx, "peer", peerTask{Dir: filepath.Join(dir, "certificates"), Etcd: endpoint})
	if api == nil {
		return begun, err
	}
	t.processes = append([]*child{api}, t.processes...)
	return begun, errors.Join(err, api.receive(&t.access))
}

// serveEtcd is the peer's etcd: durable, and a process of its own, as in
// production.
func serveEtcd(ctx context.Context, p *parent) error {
	var task peerTask
	if err := p.receive(&task); err != nil {
		return err
	}
	store, err := peer.StartEtcd(ctx, peer.EtcdOptions{DataDir: task.Dir, Fsync: true})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := p.send(store.Endpoint()); err != nil {
		return err
	}
	return p.wait()
}

// servePeer is the API server of the upstream libraries.
func servePeer(ctx context.Context, p *parent) error {
	var task peerTask
	if err := p.receive(&task); err != nil {
		return err
	}
	if err := os.MkdirAll(task.Dir, 0o700); err != nil {
		return err
	}
	s, err := peer.Start(ctx, peer.Options{Etcd: task.Etcd, CertDir: task.Dir, Protobuf: true})
	if err != nil {
		return err
	}
	config := s.Config()
	if err := p.send(access{URL: config.Host, CA: config.CAData}); err != nil {
		return err
	}
	return errors.Join(p.wait(), s.Stop())
}
