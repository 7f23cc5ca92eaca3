package relay

import (
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage/etcd/backup"
)

// TestHistoriesOfARestoredUpstream: the upstream is replaced by a backup of it, twice, while
// writes that the backup lacks have reached all clients. Then each client comes to the
// restored state, and nothing of what was lost is shown after that.
func TestHistoriesOfARestoredUpstream(t *testing.T) {
	for name, take := range map[string]func(*cluster, string) (restore func()){"snapshot": (*cluster).snapshot, "copied files": (*cluster).copyFiles} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			c := newCluster(t, 2, func(c *server.Config) {
				if c.Relay == nil {
					c.DataDir, c.Storage = directory, server.Embedded
				}
			})
			random := rand.New(rand.NewPCG(uint64(*seed), 3))
			fault := func() { c.relayFault(random) }
			p := begin(t, c)
			for range 2 {
				p.suffer(*duration/4, fault)
				p.rest()
				var saved []map[string]*corev1.ConfigMap
				for _, w := range p.writers {
					saved = append(saved, w.saved())
				}
				restore := take(c, directory)
				p.write()
				p.suffer(*duration/4, fault)
				p.rest()
				t.Log("the upstream is restored")
				c.restart(restore)
				p.restored(saved)
				p.write()
			}
			p.suffer(*duration/4, fault)
			p.end(false)
			p.written.mustNotGoBack()
		})
	}
}

// snapshot saves a snapshot of the upstream.
func (c *cluster) snapshot(directory string) (restore func()) {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "snapshot")
	response, err := c.upstream.Client(client.Options{}).Raw(c.t.Context(), client.RawRequest{Path: "/levelwire/v1/storage/snapshot"})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		c.t.Fatal(response.Status, err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		c.t.Fatal(err)
	}
	etcd := filepath.Join(directory, "etcd")
	return func() {
		if err := os.RemoveAll(etcd); err != nil {
			c.t.Fatal(err)
		}
		if err := backup.Restore(path, etcd); err != nil {
			c.t.Fatal(err)
		}
	}
}

// copyFiles copies the files of the upstream's storage, for which it is restarted.
func (c *cluster) copyFiles(directory string) (restore func()) {
	c.t.Helper()
	etcd, copied := filepath.Join(directory, "etcd"), c.t.TempDir()
	c.restart(func() {
		if err := os.CopyFS(copied, os.DirFS(etcd)); err != nil {
			c.t.Fatal(err)
		}
	})
	return func() {
		if err := os.RemoveAll(etcd); err != nil {
			c.t.Fatal(err)
		}
		if err := os.CopyFS(etcd, os.DirFS(copied)); err != nil {
			c.t.Fatal(err)
		}
	}
}

// restored notes that the upstream is what it was when the writers had this state.
func (p *play) restored(saved []map[string]*corev1.ConfigMap) {
	p.t.Helper()
	from, _ := mapsAt(p.t, hostOf(p.t, p.cluster.upstream))
	list, err := from.List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	listed := map[string]*corev1.ConfigMap{}
	for _, m := range list.Items {
		listed[m.Name] = m
	}
	version := parseRevision(list.ResourceVersion)
	r := p.written
	r.mu.Lock()
	if version < r.until+backup.RevisionBump/2 {
		p.t.Errorf("the restored server is at version %d, and clients know %d", version, r.until)
	}
	r.eras = append(r.eras, era{r.until + backup.RevisionBump/2, len(r.done)})
	r.until = version
	r.acked = append(r.acked, acknowledged{time.Now(), version})
	r.mu.Unlock()
	for i, w := range p.writers {
		w.restored(saved[i], listed, version)
	}
}

// mustNotGoBack checks that no watcher has been shown anything of an era after a later one.
func (r *recorder) mustNotGoBack() {
	r.t.Helper()
	for _, view := range r.views {
		reached := 0
		at := func(version uint64) {
			now := 0
			for i, e := range r.eras {
				if version >= e.version {
					now = i + 1
				}
			}
			if now < reached {
				r.t.Errorf("%s: version %d is of what was lost, and the watcher had come to restore %d", view.Name, version, reached)
			}
			reached = max(reached, now)
		}
		for _, segment := range view.Segments {
			at(segment.From)
			for _, e := range segment.Events {
				at(e.Revision)
			}
		}
		if reached != len(r.eras) {
			r.t.Errorf("%s has come to restore %d of %d", view.Name, reached, len(r.eras))
		}
	}
}
