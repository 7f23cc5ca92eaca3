package filtered

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
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

	"github.com/levelwire/levelwire/internal/childprocess"
	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/server"
)

// The environment of a process that is the server.
const (
	serverDir       = "LEVELWIRE_FILTERED_SERVER_DIR"
	serverPort      = "LEVELWIRE_FILTERED_SERVER_PORT"
	serverCompacts  = "LEVELWIRE_FILTERED_SERVER_COMPACTS" // empty: it keeps its history
	serverStore     = "LEVELWIRE_FILTERED_SERVER_STORE"    // the URL of an etcd; empty: its own
	adminToken      = "root"
	isReady         = "ready"
	tokensFile      = "tokens.csv"
	compactInterval = 500 * time.Millisecond
	compactAfter    = 2 * time.Second
)

// runServer is the server's process, which can be killed. It ends with its parent.
func runServer(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	port, err := strconv.Atoi(os.Getenv(serverPort))
	if err != nil {
		return err
	}
	config := server.Config{
		DataDir: dir, SecurePort: port, TokenAuthFile: filepath.Join(dir, tokensFile), FilteredLists: true,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}
	if url := os.Getenv(serverStore); url != "" {
		config.Storage, config.EtcdServers = server.Etcd, []string{url}
	}
	if os.Getenv(serverCompacts) == "" {
		config.ExactHistory = true
	} else {
		config.CompactionInterval, config.CompactionRetention = compactInterval, compactAfter
	}
	s, err := server.Listen(config)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // which ends when the parent does
		stop()
	}()
	go func() {
		<-s.Ready()
		_, _ = os.Stdout.WriteString(isReady + "\n") // the parent is gone if it fails
	}()
	return s.Run(ctx)
}

// host runs a server as a process of its own, on one port and one directory for ever.
type host struct {
	dir, port string
	compacts  bool   // history is compacted
	store     string // the URL of the etcd that it shares with others; empty: it has its own
	cmd       *exec.Cmd
	config    *rest.Config // of the server, without a user
}

// newHost starts a server. It has the authorities of another one, unless that is nil.
func newHost(t *testing.T, compacts bool, store string, like *host) *host {
	t.Helper()
	port, release, err := faultnet.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	h := &host{dir: t.TempDir(), port: strconv.Itoa(port), compacts: compacts, store: store}
	if like != nil {
		if err := os.CopyFS(filepath.Join(h.dir, "pki"), os.DirFS(filepath.Join(like.dir, "pki"))); err != nil {
			t.Fatal(err)
		}
	}
	tokens := adminToken + ",root,root,\"system:masters\"\n"
	for _, i := range identities {
		tokens += fmt.Sprintf("%s,%s,%s,%q\n", i.token, i.user, i.user, strings.Join(i.groups, ","))
	}
	if err := os.WriteFile(filepath.Join(h.dir, tokensFile), []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.end(t, syscall.SIGTERM) })
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := clientcmd.BuildConfigFromFlags("", filepath.Join(h.dir, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	h.config = &rest.Config{Host: kubeconfig.Host, TLSClientConfig: rest.TLSClientConfig{CAData: kubeconfig.CAData}}
	return h
}

// start returns when the server is ready.
func (h *host) start() error {
	h.cmd = exec.Command(os.Args[0])
	h.cmd.Env = append(os.Environ(), serverDir+"="+h.dir, serverPort+"="+h.port, serverStore+"="+h.store)
	if h.compacts {
		h.cmd.Env = append(h.cmd.Env, serverCompacts+"=yes")
	}
	h.cmd.Stderr = os.Stderr
	if _, err := h.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := childprocess.Start(h.cmd); err != nil {
		return err
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != isReady+"\n" {
		return fmt.Errorf("the server said %q, %w", line, err)
	}
	return nil
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

// tls is what clients know of the server.
func (h *host) tls(t *testing.T) *tls.Config {
	t.Helper()
	config, err := rest.TLSConfigFor(h.config)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// transport is for HTTP/2, or only for HTTP/1.1.
func (h *host) transport(t *testing.T, http2 bool) *http.Transport {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: h.tls(t), ForceAttemptHTTP2: http2, DisableCompression: true}
	if !http2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return transport
}
