package informer_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer/informertest"
	"github.com/levelwire/levelwire/internal/faultnet"
)

func TestContractOnAScriptedServer(t *testing.T) {
	informertest.Run(t, scripted, synctest.Test)
}

// memory is the least API server that list-watch needs, in 150 lines and over a
// network in memory: a history of objects of any kind, with streaming lists,
// pages and bookmarks. Its history is never compacted.
type memory struct {
	mu      sync.Mutex
	history []change
	changed chan struct{} // closed by the next change
}

// change is one event; its version is its place in the history, from 1.
type change struct {
	path       string // of the collection: "namespaces", "namespaces/x/configmaps"
	kind       string // ADDED, MODIFIED, DELETED
	obj, older *corev1.ConfigMap
}

func scripted(t *testing.T) informertest.Server {
	pipe := faultnet.NewPipe()
	server := &http.Server{Handler: &memory{changed: make(chan struct{})}}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(pipe) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return informertest.Server{Config: &rest.Config{Host: "http://memory"}, Options: client.Options{Dial: pipe.Dial, ForceHTTP1: true}}
}

func (m *memory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path, known := strings.CutPrefix(r.URL.Path, "/api/v1/")
	if !known {
		http.NotFound(w, r)
		return
	}
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && query.Get("watch") == "true":
		m.watch(w, r, path)
	case r.Method == http.MethodGet:
		m.list(w, r, path)
	default:
		m.write(w, r, path)
	}
}

// write creates, updates or deletes.
func (m *memory) write(w http.ResponseWriter, r *http.Request, path string) {
	var obj corev1.ConfigMap
	if err := json.NewDecoder(r.Body).Decode(&obj); err != nil && r.Method != http.MethodDelete {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	version := len(m.history) + 1
	if obj.Name == "" {
		obj.Name = obj.GenerateName + strconv.Itoa(version)
	}
	c := change{path: path, kind: "ADDED", obj: &obj}
	if r.Method != http.MethodPost {
		var name string
		c.path, name = path[:strings.LastIndex(path, "/")], path[strings.LastIndex(path, "/")+1:]
		c.older = m.state(c.path, version)[name]
		c.kind = "MODIFIED"
		if r.Method == http.MethodDelete {
			c.kind, obj = "DELETED", *c.older.DeepCopy()
		}
	}
	obj.ResourceVersion = strconv.Itoa(version)
	if namespaceWatches := strings.Split(c.path, "/"); len(namespaceWatches) == 3 {
		obj.Namespace = namespaceWatches[1]
	}
	if c.older == nil {
		obj.UID = types.UID(strconv.Itoa(version))
	}
	m.history = append(m.history, c)
	close(m.changed)
	m.changed = make(chan struct{})
	_ = json.NewEncoder(w).Encode(&obj)
}

// state is a collection at a version. It needs mu.
func (m *memory) state(path string, version int) map[string]*corev1.ConfigMap {
	state := map[string]*corev1.ConfigMap{}
	for _, c := range m.history[:min(version, len(m.history))] {
		switch {
		case c.path != path:
		case c.kind == "DELETED":
			delete(state, c.obj.Name)
		default:
			state[c.obj.Name] = c.obj
		}
	}
	return state
}

func selected(r *http.Request, obj *corev1.ConfigMap) bool {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	return err == nil && obj != nil && selector.Matches(labels.Set(obj.Labels))
}

// list has pages: the token is the version and the last name.
func (m *memory) list(w http.ResponseWriter, r *http.Request, path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	version, after := len(m.history), ""
	if token := r.URL.Query().Get("continue"); token != "" {
		_, _ = fmt.Sscanf(token, "%d %s", &version, &after)
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		limit = 1 << 30
	}
	list := corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(version)}, Items: []corev1.ConfigMap{}}
	state := m.state(path, version)
	for _, name := range sortedKeys(state) {
		switch {
		case name <= after || !selected(r, state[name]):
		case len(list.Items) == limit:
			list.Continue = fmt.Sprintf("%d %s", version, list.Items[limit-1].Name)
		default:
			list.Items = append(list.Items, *state[name])
		}
	}
	_ = json.NewEncoder(w).Encode(&list)
}

func (m *memory) watch(w http.ResponseWriter, r *http.Request, path string) {
	m.mu.Lock()
	version, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	var initial []change
	if r.URL.Query().Get("sendInitialEvents") == "true" || err != nil {
		version = len(m.history)
		state := m.state(path, version)
		for _, name := range sortedKeys(state) {
			initial = append(initial, change{kind: "ADDED", obj: state[name]})
		}
	}
	m.mu.Unlock()
	for _, c := range initial {
		send(w, r, c)
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		bookmark(w, version, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	end := time.NewTimer(time.Duration(seconds) * time.Second)
	defer end.Stop()
	for {
		m.mu.Lock()
		news, changed := m.history[version:], m.changed
		m.mu.Unlock()
		for _, c := range news {
			version++
			if c.path == path {
				send(w, r, c)
			}
		}
		flush(w)
		select {
		case <-changed:
		case <-end.C:
			bookmark(w, version, nil)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// send sends what a watcher with this selector sees of a change: of an object
// that leaves the selection the last state in it, at the version of the change.
func send(w io.Writer, r *http.Request, c change) {
	was, is := selected(r, c.older), selected(r, c.obj) && c.kind != "DELETED"
	obj := c.obj.DeepCopy()
	kind := map[bool]map[bool]string{false: {true: "ADDED"}, true: {true: "MODIFIED", false: "DELETED"}}[was][is]
	if kind == "" {
		return
	}
	if kind == "DELETED" {
		obj = c.older.DeepCopy()
		obj.ResourceVersion = c.obj.ResourceVersion
	}
	event(w, kind, obj)
}

func bookmark(w http.ResponseWriter, version int, annotations map[string]string) {
	event(w, "BOOKMARK", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version), Annotations: annotations}})
	flush(w)
}

func event(w io.Writer, kind string, obj *corev1.ConfigMap) {
	obj.TypeMeta = metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}
	_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": obj})
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

func sortedKeys(state map[string]*corev1.ConfigMap) []string {
	names := make([]string, 0, len(state))
	for name := range state {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
