package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// lineWriter hands what is written to it to a reader of lines.
type lineWriter struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
	return w.text.Write(p)
}

// await returns what was written once it matches.
func (w *lineWriter) await(ctx context.Context, t *testing.T, pattern string) []string {
	t.Helper()
	return w.awaitMatch(ctx, t, pattern, regexp.MustCompile(pattern), func([]string) bool { return true })
}

// awaitMatch returns the first match of an expression that is as wanted, once it is written.
func (w *lineWriter) awaitMatch(ctx context.Context, t *testing.T, what string, expression *regexp.Regexp, wanted func([]string) bool) []string {
	t.Helper()
	for {
		w.mu.Lock()
		text := w.text.String()
		w.mu.Unlock()
		for _, found := range expression.FindAllStringSubmatch(text, -1) {
			if wanted(found) {
				return found
			}
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			t.Fatalf("%q was not written, but:\n%s", what, text)
		}
	}
}

// awaitVersion waits until a recorder has reported a version, or a later one: the server
// writes objects of its own.
func (w *lineWriter) awaitVersion(ctx context.Context, t *testing.T, version string) {
	t.Helper()
	w.awaitMatch(ctx, t, version, regexp.MustCompile(`version (\d+), `), func(found []string) bool {
		return len(found[1]) > len(version) || len(found[1]) == len(version) && found[1] >= version
	})
}

// startCommand runs a command until stop is called, which returns its exit code.
func startCommand(ctx context.Context, t *testing.T, args ...string) (out *lineWriter, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	out = &lineWriter{changed: make(chan struct{}, 1)}
	code := make(chan int, 1)
	go func() { code <- run(ctx, append([]string{"levelwire"}, args...), out, out) }()
	stop = sync.OnceValue(func() int {
		cancel()
		return <-code
	})
	t.Cleanup(func() { stop() })
	return out, stop
}

// TestRecordAndReplay records a server by one command and replays the file by another.
func TestRecordAndReplay(t *testing.T) {
	ctx := maintenanceContext(t)
	c, stop := runServer(ctx, t, t.TempDir())
	path := filepath.Join(t.TempDir(), "cluster.lwr")
	recordReportInterval = 0
	defer func() { recordReportInterval = time.Minute }()
	out, end := startCommand(ctx, t, "record", path, "--kubeconfig", kubeconfigOf(t, c))
	out.await(ctx, t, "recording to")
	version := createNamed(ctx, t, c, "recorded")
	out.awaitVersion(ctx, t, version)
	if code := end(); code != exitOK {
		t.Fatal(out.text.String())
	}
	out.await(ctx, t, "left out: secrets")
	stop()

	var info bytes.Buffer
	if code := run(ctx, []string{"levelwire", "replay", path, "--info"}, &info, &info); code != exitOK || !strings.Contains(info.String(), "no damage found") {
		t.Error(code, info.String())
	}
	out, end = startCommand(ctx, t, "replay", path, "--data-dir", t.TempDir(), "--secure-port", "0", "--speed", "max")
	replayed := clientOfReplay(ctx, t, out)
	w, err := configMapsOf(replayed).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range w.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Object.Name == "recorded" {
			if e.Object.ResourceVersion != version {
				t.Errorf("it has version %s instead of %s", e.Object.ResourceVersion, version)
			}
			break
		}
	}
	if code := end(); code != exitOK {
		t.Error(out.text.String())
	}
	if code := run(ctx, []string{"levelwire", "record", path, "--kubeconfig", "/nonexistent"}, io.Discard, io.Discard); code != exitFailed {
		t.Error(code)
	}
	if code := run(ctx, []string{"levelwire", "replay", path, "--speed", "-1"}, io.Discard, io.Discard); code != exitUsage {
		t.Error(code)
	}
}

// kubeconfigOf writes a kubeconfig for a client of runServer.
func kubeconfigOf(t *testing.T, c *client.Client) string {
	t.Helper()
	config, encode := c.RESTConfig(), base64.StdEncoding.EncodeToString
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"kind":"Config","apiVersion":"v1","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],
		"users":[{"name":"c","user":{"client-certificate-data":%q,"client-key-data":%q}}],
		"contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}]}`,
		config.Host, encode(config.CAData), encode(config.CertData), encode(config.KeyData))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// clientOfReplay returns a client of the server that a command says it serves.
func clientOfReplay(ctx context.Context, t *testing.T, out *lineWriter) *client.Client {
	t.Helper()
	path := out.await(ctx, t, `--kubeconfig '?([^' ]+)'? get`)[1]
	c, err := client.FromKubeconfig(path, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// TestReplaySnapshot opens a snapshot, and refuses one that is damaged.
func TestReplaySnapshot(t *testing.T) {
	ctx := maintenanceContext(t)
	dir := t.TempDir()
	c, stop := runServer(ctx, t, dir)
	version := createNamed(ctx, t, c, "saved")
	path := filepath.Join(t.TempDir(), "backup.db")
	var saved bytes.Buffer
	if code := run(ctx, []string{"levelwire", "snapshot", "save", path, "--kubeconfig", kubeconfigOf(t, c)}, &saved, &saved); code != exitOK {
		t.Fatal(saved.String())
	}
	stop()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out, end := startCommand(ctx, t, "replay", path, "--data-dir", t.TempDir(), "--secure-port", "0")
	replayed := clientOfReplay(ctx, t, out)
	object, err := configMapsOf(replayed).Get(ctx, "saved", metav1.GetOptions{})
	if err != nil || object.ResourceVersion != version {
		t.Errorf("%+v %v", object, err)
	}
	if err := configMapsOf(replayed).Delete(ctx, "saved", metav1.DeleteOptions{}); !apierrors.IsMethodNotSupported(err) {
		t.Error(err)
	}
	if code := end(); code != exitOK {
		t.Error(out.text.String())
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(data, after) {
		t.Error("the file has changed", err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var damaged bytes.Buffer
	if code := run(ctx, []string{"levelwire", "replay", path}, &damaged, &damaged); code != exitFailed || !strings.Contains(damaged.String(), "checksum") {
		t.Error(code, damaged.String())
	}
}
