package soak

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/internal/childprocess"
	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/tests/workload"
)

// The environment of a process that is the server.
const (
	serverDir       = "LEVELWIRE_SOAK_SERVER_DIR"
	serverPort      = "LEVELWIRE_SOAK_SERVER_PORT"
	serverClientCAs = "LEVELWIRE_SOAK_SERVER_CLIENT_CAS"
	serverCert      = "LEVELWIRE_SOAK_SERVER_CERT"
	serverKey       = "LEVELWIRE_SOAK_SERVER_KEY"
	serverDevice    = "LEVELWIRE_SOAK_SERVER_DEVICE" // mounted at serverDir; empty: none
	serverClock     = "LEVELWIRE_SOAK_SERVER_CLOCK"  // by how much the wall clock differs
)

const (
	diskReserve = 64 << 20
	quota       = 24 << 20
)

// shiftWall makes the wall clock of this process differ from the system's. It is nil in
// a test that was built without command wallclock's overlay.
var shiftWall func(by time.Duration)

// The commands that the server's process takes, one a line, and what it says.
const (
	shiftClock = "clock "
	failsDisk  = "fail disk"
	isReady    = "ready"
	isDone     = "done"
)

// runServer is the server's process: it can be killed. History is compacted
// every few seconds. It says when it is ready, obeys commands, and ends with its
// parent.
func runServer(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if device := os.Getenv(serverDevice); device != "" {
		if err := mountDisk(device, dir); err != nil {
			return fmt.Errorf("mount %s: %w", device, err)
		}
	}
	if clock := os.Getenv(serverClock); clock != "" {
		if err := setClock(clock); err != nil {
			return err
		}
	}
	port, err := strconv.Atoi(os.Getenv(serverPort))
	if err != nil {
		return err
	}
	s, err := server.Listen(server.Config{
		DataDir: dir, SecurePort: port, ClientCAFile: os.Getenv(serverClientCAs), Logger: slog.New(slog.DiscardHandler),
		TLSCertFile: os.Getenv(serverCert), TLSKeyFile: os.Getenv(serverKey),
		DiskReserveBytes: diskReserve, QuotaBytes: quota,
		CompactionInterval: 2 * time.Second, CompactionRetention: 3 * time.Second,
	})
	if err != nil {
		return err
	}
	go func() {
		obey(dir, os.Stdin) // which ends when the parent does
		thawDisk(dir)
		stop()
	}()
	go func() {
		<-s.Ready()
		_, _ = os.Stdout.WriteString(isReady + "\n") // the parent is gone if it fails
	}()
	if err := s.Run(ctx); err != nil {
		return err
	}
	stop()
	return goleak.Find(append(etcdsGoroutines, goleak.IgnoreAnyFunction("github.com/levelwire/levelwire/tests/soak.obey"))...)
}

// obey executes commands until there are no more.
func obey(dir string, from io.Reader) {
	for commands := bufio.NewScanner(from); commands.Scan(); {
		var err error
		if clock, ok := strings.CutPrefix(commands.Text(), shiftClock); ok {
			err = setClock(clock)
		} else {
			err = failDisk(os.Getenv(serverDevice), dir)
		}
		if err != nil {
			_, _ = fmt.Println(err)
			continue
		}
		_, _ = fmt.Println(isDone)
	}
}

func setClock(by string) error {
	d, err := time.ParseDuration(by)
	if err == nil {
		shiftWall(d)
	}
	return err
}

// host runs the server as a process of its own, on one port and one directory
// for ever.
type host struct {
	dir         string
	port        string
	disk        *disk // nil: the directory is on the disk of this process
	credentials *credentials
	clock       time.Duration // by how much its wall clock differs from the system's
	url         string
	cmd         *exec.Cmd
	stdin       io.WriteCloser
	stdout      *bufio.Reader
	stderr      *bytes.Buffer
}

func newHost(t *testing.T, c *credentials, d *disk) *host {
	t.Helper()
	port, release, err := faultnet.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	h := &host{dir: t.TempDir(), port: strconv.Itoa(port), credentials: c, disk: d}
	t.Cleanup(func() { h.end(t, syscall.SIGTERM) })
	return h
}

// start returns when the server is ready.
func (h *host) start(t *testing.T) {
	t.Helper()
	h.cmd = exec.Command(os.Args[0])
	h.cmd.Env = append(os.Environ(), serverDir+"="+h.dir, serverPort+"="+h.port, serverClientCAs+"="+h.credentials.authorityFile,
		serverCert+"="+h.credentials.servingFile, serverKey+"="+h.credentials.servingKeyFile)
	if h.disk != nil {
		h.disk.prepare(t)
		h.disk.isolate(h.cmd)
		h.cmd.Env = append(h.cmd.Env, serverDevice+"="+h.disk.device)
	}
	if h.clock != 0 {
		h.cmd.Env = append(h.cmd.Env, serverClock+"="+h.clock.String())
	}
	h.stderr = &bytes.Buffer{}
	h.cmd.Stderr = io.MultiWriter(os.Stderr, h.stderr)
	var err error
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := childprocess.Start(h.cmd); err != nil {
		t.Fatal(err)
	}
	h.stdout = bufio.NewReader(stdout)
	h.hear(t, isReady)
	if h.disk != nil {
		if err := h.disk.detach(); err != nil { // when it is not mounted any more
			t.Fatal(err)
		}
	}
	if h.url != "" {
		return
	}
	config, err := clientcmd.BuildConfigFromFlags("", h.inside("admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	h.url = config.Host
}

// inside is the path, for this process, of a file in the server's directory.
func (h *host) inside(name string) string {
	if h.disk == nil {
		return filepath.Join(h.dir, name)
	}
	return filepath.Join("/proc", strconv.Itoa(h.cmd.Process.Pid), "root", h.dir, name)
}

// hear waits for a line of the server's process.
func (h *host) hear(t *testing.T, want string) {
	t.Helper()
	if line, err := h.stdout.ReadString('\n'); err != nil || line != want+"\n" {
		t.Fatalf("the server said %q, %v", line, err)
	}
}

// command has the server's process do something.
func (h *host) command(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(h.stdin, line+"\n"); err != nil {
		t.Fatal(err)
	}
	h.hear(t, isDone)
}

// setClock makes the wall clock of the server's process differ from the system's.
func (h *host) setClock(t *testing.T, by time.Duration) {
	t.Helper()
	h.clock = by
	h.command(t, shiftClock+by.String())
}

// end sends the process a signal and waits until it is gone.
func (h *host) end(t *testing.T, with syscall.Signal) {
	t.Helper()
	if h.cmd == nil {
		return
	}
	if err := h.cmd.Process.Signal(with); err != nil {
		t.Error(err)
	}
	// A killed process has an error to wait for; a stopped one must not.
	if err := h.cmd.Wait(); err != nil && with != syscall.SIGKILL {
		t.Errorf("the server's end: %v", err)
	}
	h.cmd = nil
}

// awaitFailure waits until the server ends by itself, with exit code 1, and returns what
// it has said.
func (h *host) awaitFailure(t *testing.T) (said string) {
	t.Helper()
	stuck := time.AfterFunc(workload.Timeout, func() { _ = h.cmd.Process.Kill() })
	defer stuck.Stop()
	err := h.cmd.Wait()
	h.cmd = nil
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the server's end: %v", err)
	}
	return h.stderr.String()
}
