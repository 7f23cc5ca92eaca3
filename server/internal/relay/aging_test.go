package relay

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server/internal/apiserver"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// TestOldVersionsArePassedOn: only the upstream knows whether a version that is no longer recent has
// expired. Watches go on from what the cache has.
func TestOldVersionsArePassedOn(t *testing.T) {
	tr := newTree(t)
	s := tr.root.source
	r := s.relay
	r.byResource.Store(&map[*resource.Resource]*source{s.res: s})
	reader, err := read.New(read.Config{StoreOf: r.StoreOf, Cache: r.Cache, Compacted: r.Compacted})
	if err != nil {
		t.Fatal(err)
	}
	at := func(version int) error {
		_, err := reader.List(t.Context(), read.Scope{Resource: s.res}, &metav1.ListOptions{
			ResourceVersion: fmt.Sprint(version), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		})
		return err
	}
	first := treeObjects
	tr.write(t)
	r.ageVersions()
	if err := at(first); err != nil {
		t.Errorf("a recent version: %v", err)
	}
	r.ageVersions()
	if err := at(first); !errors.Is(err, apiserver.ErrNotCached) {
		t.Errorf("a version that was replaced before: %v, want it passed on", err)
	}
	if err := at(int(tr.versions[0])); err != nil {
		t.Errorf("the version since then: %v", err)
	}
	w, err := s.cache.Watch(watchcache.WatchOptions{After: treeObjects, Waker: tr.root})
	if err != nil {
		t.Fatal(err)
	}
	var events [2]watchcache.Event
	if n, err := w.Read(events[:]); n != 1 || err != nil || events[0].Revision != tr.versions[0] {
		t.Errorf("a watch from the old version gets %d events, the first %+v, %v", n, events[0], err)
	}
}

// TestFillAsksForRetainedVersions, each of its pages: a Levelwire upstream may have a version in a cache
// longer than in its store.
func TestFillAsksForRetainedVersions(t *testing.T) {
	var asked []string
	r := relayOf(t, func(w http.ResponseWriter, req *http.Request) {
		asked = append(asked, req.Header.Get(watchstream.HistoryHeader))
		next := ""
		if len(asked) == 1 {
			next = "next"
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":%q},"items":[]}`, next)
	})
	res := builtin.Table().Lookup("", "v1", "configmaps")
	s := &source{relay: r, res: res, running: t.Context(), endpoint: client.ForResource(r.client, res.GroupVersionResource(), func() *object { return &object{} })}
	if _, err := s.listExactly("7"); err != nil || len(asked) != 2 || asked[0] != watchstream.Retained || asked[1] != watchstream.Retained {
		t.Errorf("the requests say %q, want that retained versions will do: %v", asked, err)
	}
}
