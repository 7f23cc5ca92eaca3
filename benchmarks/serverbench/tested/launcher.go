package tested

import (
	"bufio"
	"cmp"
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

// Launcher starts servers under test.
type Launcher struct {
	Dir       string // scratch; the working directory of all processes
	Levelwire string // our program
	Profiling bool   // whether our server serves profiles
}

// Start starts the server of a side on the data of a folder, and waits
// until its cache is filled.
func (l *Launcher) Start(ctx context.Context, side, dir string, objects int) (*Server, error) {
	t := &Server{Side: side, Objects: objects}
	if err := l.Launch(ctx, t, dir); err != nil {
		return nil, err
	}
	return t, nil
}

// Launch starts the processes of a server that are not running. If it fails,
// none is.
func (l *Launcher) Launch(ctx context.Context, t *Server, dir string) error {
	begin := map[string]func(context.Context, *Server, string) (time.Time, error){Ours: l.startOurs, Upstream: l.startUpstream}[t.Side]
	if begin == nil {
		return fmt.Errorf("there is no side %q, only %s and %s", t.Side, Ours, Upstream)
	}
	begun, err := begin(ctx, t, dir)
	if err == nil {
		err = t.awaitCache(ctx)
		t.Ready = time.Since(begun)
	}
	if err != nil {
		t.Kill()
	}
	return err
}

// startOurs runs `levelwire serve`, or another command with a server, with its defaults, which are embedded etcd,
// fsync and TLS.
func (l *Launcher) startOurs(ctx context.Context, t *Server, dir string) (time.Time, error) {
	args := append([]string{cmp.Or(t.Command, "serve"), "--data-dir", dir, "--secure-port", strconv.Itoa(t.Port), "--log-level", "warn"}, t.Flags...)
	if l.Profiling {
		args = append(args, "--profiling")
	}
	begun := time.Now()
	c, stdout, err := process.Execute(ctx, l.Dir, Ours, exec.CommandContext(ctx, l.Levelwire, args...))
	if err != nil {
		return begun, err
	}
	t.Processes = append(t.Processes, c)
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
	t.Access = Access{URL: config.Host, CA: config.CAData, Cert: config.CertData, Key: config.KeyData}
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
func (l *Launcher) startUpstream(ctx context.Context, t *Server, dir string) (time.Time, error) {
	if len(t.Processes) == 0 {
		store, err := process.Start(ctx, l.Dir, "etcd", peerTask{Dir: EtcdDir(Upstream, dir)})
		if store == nil {
			return time.Time{}, err
		}
		t.Processes = append(t.Processes, store)
		if err := errors.Join(err, store.Receive(&t.Etcd)); err != nil {
			return time.Time{}, err
		}
	}
	// What etcd needs for its own start is not counted against upstream.
	var err error
	if t.CPUBefore, err = t.CPU(); err != nil {
		return time.Time{}, err
	}
	begun := time.Now()
	api, err := process.Start(ctx, l.Dir, "peer", peerTask{Dir: filepath.Join(dir, "certificates"), Etcd: t.Etcd, Port: t.Port})
	if api == nil {
		return begun, err
	}
	t.Processes = append([]*process.Child{api}, t.Processes...)
	return begun, errors.Join(err, api.Receive(&t.Access))
}

// ServeEtcd is the peer's etcd: durable, and a process of its own, as in
// production.
func ServeEtcd(ctx context.Context, p *process.Parent) error {
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

// ServeUpstream is the API server of the upstream libraries.
func ServeUpstream(ctx context.Context, p *process.Parent) error {
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
	if err := p.Send(Access{URL: config.Host, CA: config.CAData}); err != nil {
		return err
	}
	return errors.Join(p.Wait(), s.Stop())
}

// EtcdDir is where a side keeps etcd's files below its folder.
func EtcdDir(side, dir string) string {
	if side == Ours {
		return filepath.Join(dir, "etcd") // as the server does
	}
	return filepath.Join(dir, "default.etcd")
}
