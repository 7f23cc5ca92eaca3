package garbage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// api is an API server in memory, of objects without namespaces. Its uids are names. It fails the test if an owner goes
// while another object names it.
type api struct {
	t       *testing.T
	mu      sync.Mutex
	version int64
	served  map[string][]string // the resources of group versions
	objects map[string]*metadata
	changes []change
	moved   chan struct{} // is closed when anything changes
	deleted []string

	refused map[string]bool  // lists and watches of resources, and documents of discovery
	held    map[string]int64 // the version after which followed watches of a resource bring nothing
	silent  map[string]bool  // resources of which a short watch says nothing, either
	cuts    map[string]int   // how often the watches of a resource were cut
	slow    time.Duration    // after what time the server says which groups it has
	lists   map[string]int   // how often a resource was listed, and one object of it
}

// change is one of an object, in the resource that its key names.
type change struct {
	kind    apiwatch.EventType
	key     string
	version int64
	object  *metadata
}

func newAPI() *api {
	return &api{version: 10, objects: map[string]*metadata{}, refused: map[string]bool{},
		held: map[string]int64{}, silent: map[string]bool{}, cuts: map[string]int{}, lists: map[string]int{},
		served: map[string][]string{"example.com/v1": {"owners"}, "things.example.com/v1": {"things"}, "apiextensions.k8s.io/v1": {"customresourcedefinitions"}}}
}

// set changes the server, in one step for all that watch.
func (a *api) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	close(a.moved)
	a.moved = make(chan struct{})
}

// note needs mu, as all of the following.
func (a *api) note(kind apiwatch.EventType, key string, obj *metadata) {
	a.version++
	obj.ResourceVersion = fmt.Sprint(a.version)
	a.changes = append(a.changes, change{kind, key, a.version, obj.DeepCopy()})
}

// create makes an object, which owners may own.
func (a *api) create(key string, owners ...string) {
	_, name, _ := strings.Cut(key, "/")
	obj := &metadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	obj.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
	for _, owner := range owners {
		obj.OwnerReferences = append(obj.OwnerReferences, own(owner))
	}
	a.objects[key] = obj
	a.note(apiwatch.Added, key, obj)
}

func own(owner string) metav1.OwnerReference {
	blocks := true
	return metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "owners", Name: owner, UID: types.UID(owner), BlockOwnerDeletion: &blocks}
}

// adopt gives an object to an owner.
func (a *api) adopt(key, owner string) {
	a.objects[key].OwnerReferences = append(a.objects[key].OwnerReferences, own(owner))
	a.note(apiwatch.Modified, key, a.objects[key])
}

// mark begins the deletion of an owner, some time ago by the server's clock.
func (a *api) mark(owner, finalizer string, ago time.Duration) {
	obj := a.objects["owners/"+owner]
	at := metav1.NewTime(time.Now().Add(-ago))
	obj.DeletionTimestamp, obj.Finalizers = &at, []string{finalizer}
	a.note(apiwatch.Modified, "owners/"+owner, obj)
}

// hold has the followed watches of a resource come to the present version, and no further.
func (a *api) hold(resource string) { a.held[resource] = a.version }

// cut ends the watches of a resource. They and lists are refused until refused is false.
func (a *api) cut(resource string) {
	a.cuts[resource]++
	a.refused[resource] = true
}

func (a *api) remove(key string) {
	obj := a.objects[key]
	delete(a.objects, key)
	a.note(apiwatch.Deleted, key, obj)
	for other, o := range a.objects {
		if slices.ContainsFunc(o.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == obj.UID }) {
			a.t.Errorf("%s goes while it owns %s", key, other)
		}
	}
}

// has returns whether the server has an object, and who owns it.
func (a *api) has(key string) (there bool, owners int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if obj := a.objects[key]; obj != nil {
		return true, len(obj.OwnerReferences)
	}
	return false, 0
}

// listed returns how often each of lists was asked for.
func (a *api) listed(lists ...string) (times []int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, list := range lists {
		times = append(times, a.lists[list])
	}
	return times
}

// RoundTrip implements http.RoundTripper.
func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
	}
	if a.slow > 0 && r.URL.Path == "/apis" {
		time.Sleep(a.slow) // of the bubble
	}
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	a.set(func() {
		switch answer := a.answer(r, sent).(type) {
		case int:
			resp.StatusCode = answer
			reason := metav1.StatusReasonUnknown
			if answer == http.StatusConflict {
				reason = metav1.StatusReasonConflict
			}
			resp.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"kind":"Status","status":"Failure","code":%d,"reason":%q}`, answer, reason)))
		case io.ReadCloser:
			resp.Body = answer
		default:
			body, err := json.Marshal(answer)
			if err != nil {
				a.t.Error(err)
			}
			resp.Body = io.NopCloser(strings.NewReader(string(body)))
		}
	})
	return resp, nil
}

// answer returns a status code, a stream, or what is to be encoded.
func (a *api) answer(r *http.Request, sent []byte) any {
	path := strings.TrimPrefix(r.URL.Path, "/")
	parts := strings.SplitN(path, "/", 5)
	switch {
	case a.refused[path]:
		return http.StatusServiceUnavailable
	case path == "api":
		return map[string]any{"kind": "APIVersions", "versions": []string{}}
	case path == "apis":
		return a.groups()
	case len(parts) < 3 || !slices.Contains(a.known(), parts[1]+"/"+parts[2]):
		return http.StatusNotFound
	case len(parts) == 3:
		resources := []any{}
		for _, name := range a.served[parts[1]+"/"+parts[2]] {
			resources = append(resources, map[string]any{"name": name, "kind": name, "verbs": []string{"list", "watch", "delete"}})
		}
		return map[string]any{"kind": "APIResourceList", "resources": resources}
	case !slices.Contains(a.served[parts[1]+"/"+parts[2]], parts[3]):
		return http.StatusNotFound
	case len(parts) == 4:
		return a.collection(r, parts[3])
	default:
		return a.one(r.Method, parts[3]+"/"+parts[4], sent)
	}
}

// known returns the group versions.
func (a *api) known() (all []string) {
	for gv := range a.served {
		all = append(all, gv)
	}
	slices.Sort(all)
	return all
}

func (a *api) groups() any {
	groups := []any{}
	for _, gv := range a.known() {
		group, v, _ := strings.Cut(gv, "/")
		groups = append(groups, map[string]any{"name": group, "versions": []any{map[string]string{"version": v}}, "preferredVersion": map[string]string{"version": v}})
	}
	return map[string]any{"kind": "APIGroupList", "groups": groups}
}

func (a *api) collection(r *http.Request, resource string) any {
	q := r.URL.Query()
	items := []*metadata{}
	for key, obj := range a.objects {
		if strings.HasPrefix(key, resource+"/") {
			items = append(items, obj)
		}
	}
	switch {
	case a.refused[resource]:
		return http.StatusInternalServerError
	case q.Get("watch") == "":
		if q.Get("limit") == "1" {
			resource += "?limit=1"
		}
		a.lists[resource]++
		return map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": items,
			"metadata": map[string]string{"resourceVersion": fmt.Sprint(a.version)}}
	}
	s := &sending{api: a, ctx: r.Context(), resource: resource, cut: a.cuts[resource], short: len(q.Get("timeoutSeconds")) == 1}
	seconds := time.Hour
	if s.short {
		seconds, _ = time.ParseDuration(q.Get("timeoutSeconds") + "s")
	}
	s.end = time.After(seconds)
	if q.Get("sendInitialEvents") == "true" {
		for _, obj := range items {
			s.send(apiwatch.Added, obj)
		}
		s.bookmark(a.version, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	} else {
		_, _ = fmt.Sscan(q.Get("resourceVersion"), &s.at)
	}
	return s
}

func (a *api) one(method, key string, sent []byte) any {
	obj := a.objects[key]
	switch {
	case obj == nil:
		return http.StatusNotFound
	case method == http.MethodDelete:
		var opts metav1.DeleteOptions
		if err := json.Unmarshal(sent, &opts); err != nil {
			a.t.Error(err)
		}
		if p := opts.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion != obj.ResourceVersion {
			return http.StatusConflict
		}
		a.deleted = append(a.deleted, key)
		a.remove(key)
	case method == http.MethodPatch:
		before := obj.ResourceVersion
		if err := json.Unmarshal(sent, obj); err != nil { // each list is replaced
			a.t.Error(err)
		}
		if obj.ResourceVersion != before {
			obj.ResourceVersion = before
			return http.StatusConflict
		}
		a.note(apiwatch.Modified, key, obj)
		if obj.DeletionTimestamp != nil && len(obj.Finalizers) == 0 {
			a.remove(key)
		}
	}
	return obj
}

// sending is a watch.
type sending struct {
	api      *api
	ctx      context.Context
	resource string
	at       int64
	cut      int
	short    bool // as those are that ask how far a cache is
	asked    bool
	end      <-chan time.Time
	buffer   []byte
}

func (s *sending) send(kind apiwatch.EventType, obj *metadata) {
	line, err := json.Marshal(map[string]any{"type": kind, "object": obj})
	if err != nil {
		s.api.t.Error(err)
	}
	s.buffer = append(append(s.buffer, line...), '\n')
}

func (s *sending) bookmark(version int64, annotations map[string]string) {
	obj := &metadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(version), Annotations: annotations}}
	obj.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
	s.send(apiwatch.Bookmark, obj)
	s.at = version
}

// fill needs mu of the server. It puts what is to be sent next into the buffer.
func (s *sending) fill() error {
	a := s.api
	held, holds := a.held[s.resource]
	holds = holds && (!s.short || a.silent[s.resource])
	switch {
	case len(s.buffer) > 0:
		return nil
	case a.cuts[s.resource] != s.cut:
		return io.ErrUnexpectedEOF
	}
	for _, ch := range a.changes {
		if strings.HasPrefix(ch.key, s.resource+"/") && ch.version > s.at && (!holds || ch.version <= held) {
			s.at = ch.version
			s.send(ch.kind, ch.object)
			return nil
		}
	}
	switch {
	case s.short && !a.silent[s.resource] && !s.asked:
		s.asked = true
		s.bookmark(a.version, nil)
	case !s.short && holds && s.at < held:
		s.bookmark(held, nil)
	}
	return nil
}

func (s *sending) Read(p []byte) (int, error) {
	for {
		s.api.mu.Lock()
		err, moved := s.fill(), s.api.moved
		s.api.mu.Unlock()
		if err != nil {
			return 0, err
		}
		if len(s.buffer) > 0 {
			n := copy(p, s.buffer)
			s.buffer = s.buffer[n:]
			return n, nil
		}
		select {
		case <-moved:
		case <-s.end:
			return 0, io.EOF
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
	}
}

func (*sending) Close() error { return nil }
