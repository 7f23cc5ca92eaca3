package soak

import (
	"bufio"
	"context"
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

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/server"
)

// The environment of a process that is the server.
const (
	serverDir  = "LEVELWIRE_SOAK_SERVER_DIR"
	serverPort = "LEVELWIRE_SOAK_SERVER_PORT"
)

// runServer is the server's process: it can be killed. History is compacted
// every few seconds. It says when it is ready, and ends with its parent.
func runServer(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	port, err := strconv.Atoi(os.Getenv(serverPort))
	if err != nil {
		return err
	}
	s, err := server.Listen(server.Config{
		DataDir: dir, SecurePort: port, Logger: slog.New(slog.DiscardHandler),
		CompactionInterval: 2 * time.Second, CompactionRetention: 3 * time.Second,
	})
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // which ends when the parent does
		stop()
	}()
	go func() {
		<-s.Ready()
		_, _ = os.Stdout.WriteString("ready\n") // the parent is gone if it fails
	}()
	return s.Run(ctx)
}

// host runs the server as a process of its own, on one port and one directory
// for ever.
type host struct {
	dir    string
	port   string
	config *rest.Config
	cmd    *exec.Cmd
	stdin  io.Closer
}

func newHost(t *testing.T) *host {
	h := &host{dir: t.TempDir(), port: strconv.Itoa(server.AnyPort)}
	t.Cleanup(func() { h.end(t, syscall.SIGTERM) })
	return h
}

// start returns when the server is ready.
func (h *host) start(t *testing.T) {
	t.Helper()
	h.cmd = exec.Command(os.Args[0])
	h.cmd.Env = append(os.Environ(), serverDir+"="+h.dir, serverPort+"="+h.port)
	h.cmd.Stderr = os.Stderr
	var err error
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the server said %q, %v", line, err)
	}
	if h.config != nil {
		return
	}
	if h.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(h.dir, "admin.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	h.port = h.config.Host[strings.LastIndexByte(h.config.Host, ':')+1:]
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
