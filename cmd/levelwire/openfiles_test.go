//go:build unix

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// TestConnectionsLeaveFilesForTheStore opens more connections than the server's process
// may have files, while its store needs further files for its log.
func TestConnectionsLeaveFilesForTheStore(t *testing.T) {
	const files = 128
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, port := t.TempDir(), freePort(t)
	data := filepath.Join(dir, "data")
	limited := fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files)
	p := startProgram(t, dir, serve, "/bin/sh", "-c", limited, binary, serve, "--data-dir", data, "--secure-port", strconv.Itoa(port), "--log-level=warn")
	if err := p.awaitLine(ctx, "ready at"); err != nil {
		t.Fatal(err)
	}
	c, err := client.FromKubeconfig(filepath.Join(data, "admin.kubeconfig"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	maps := client.For[*corev1.ConfigMap](c).Namespace(metav1.NamespaceDefault)
	value := strings.Repeat("x", 900<<10)
	for i := range 60 { // four files of the log
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("map-", i)}, Data: map[string]string{"value": value}}
		if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		if i > 0 {
			continue
		}
		for range 2 * files { // now that the client is connected
			conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
	}
	if err := p.endedByItself(); err != nil {
		t.Fatal(err)
	}
	if log := p.logTail(); !strings.Contains(log, "connections that no user holds are closed") {
		t.Errorf("the log does not say that connections are closed:\n%s", log)
	}
}
