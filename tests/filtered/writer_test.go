package filtered

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/tests/workload"
)

const (
	rbacPath  = "/apis/rbac.authorization.k8s.io/v1/"
	valueKey  = "state" // of the annotation
	colorKey  = "color" // of the label
	aggregate = "aggregate"
	partLabel = "part"
	operation = 30 * time.Second // bounds one request: the server may be gone
)

// writer writes objects, roles and bindings, one at a time, by any of the servers, and the
// model. After a request that had no answer, because a server was killed, it finds out what
// has become of it.
type writer struct {
	t      *testing.T
	client *http.Client
	urls   []string // of the servers
	random *rand.Rand
	model  *model
	values int

	parts                     map[string][]rbacv1.PolicyRule // ClusterRoles that are aggregated
	writes, policies, unknown int
}

// object is the JSON of one.
type object = unstructured.Unstructured

var errUnanswered = errors.New("no answer")

// request makes a request of the administrator to any server. The error is errUnanswered if
// what has become of it is not known.
func (w *writer) request(method, path string, body any) (*object, int, error) {
	return w.requestAt(pick(w.random, w.urls), method, path, body)
}

func (w *writer) requestAt(url, method, path string, body any) (*object, int, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, url+path, bytes.NewReader(encoded))
	if err != nil {
		w.t.Fatal(err)
	}
	if body == nil {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set("Authorization", "Bearer "+adminToken)
	r.Header.Set("Content-Type", "application/json")
	answer, err := w.client.Do(r)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	if answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= 500 {
		return nil, answer.StatusCode, fmt.Errorf("%w: %s", errUnanswered, data)
	}
	got := new(object)
	if err := json.Unmarshal(data, &got.Object); err != nil {
		w.t.Fatalf("%s %s: %q", method, path, data)
	}
	return got, answer.StatusCode, nil
}

// insist makes a request that changes nothing until a server answers it.
func (w *writer) insist(path string) (*object, int) { return w.insistAt(w.urls, path) }

func (w *writer) insistAt(urls []string, path string) (*object, int) {
	var last error
	for end := time.Now().Add(workload.Timeout); time.Now().Before(end); workload.Wait(w.t.Context(), 20*time.Millisecond) {
		got, code, err := w.requestAt(pick(w.random, urls), http.MethodGet, path, nil)
		if err == nil {
			return got, code
		}
		last = err
	}
	w.t.Fatalf("GET %s: %v", path, last)
	return nil, 0
}

// write creates, updates or deletes an object, and returns its revision; 0 if that has not
// happened. collection is the path of all of its namespace.
func (w *writer) write(method, collection, name string, body *object) (revision int64, begun time.Time, uid string) {
	w.t.Helper()
	begun = time.Now()
	path := collection
	if method != http.MethodPost {
		path += "/" + name
	}
	var sent any
	if body != nil {
		sent = body.Object
	}
	got, code, err := w.request(method, path, sent)
	switch {
	case err != nil, code == http.StatusServiceUnavailable: // a server that has started does not know custom resources at once
		revision, uid = w.resolve(method, collection, name, body)
	case code >= 300:
		w.t.Fatalf("%s %s: %v", method, path, got.Object)
	case method == http.MethodDelete:
		revision = w.deletion(collection, name)
	default:
		revision, uid = revisionOf(got), string(got.GetUID())
	}
	return revision, begun, uid
}

func revisionOf(o *object) int64 {
	revision, _ := strconv.ParseInt(o.GetResourceVersion(), 10, 64) // 0 is no version at all
	return revision
}

// resolve finds out whether a write has happened that had no answer.
func (w *writer) resolve(method, collection, name string, body *object) (revision int64, uid string) {
	w.unknown++
	w.awaitServed(collection)
	got, code := w.insist(collection + "/" + name)
	switch {
	case method == http.MethodDelete && code == http.StatusNotFound:
		return w.deletion(collection, name), ""
	case method == http.MethodDelete, code == http.StatusNotFound, got.GetAnnotations()[valueKey] != body.GetAnnotations()[valueKey]:
		return 0, ""
	}
	return revisionOf(got), string(got.GetUID())
}

// awaitServed waits until all servers serve a collection: one that has started reads the
// definitions of custom resources first.
func (w *writer) awaitServed(collection string) {
	for _, url := range w.urls {
		testwait.Stable(w.t, url+collection+" is served", func() (any, bool) {
			_, code := w.insistAt([]string{url}, collection)
			return code, code == http.StatusOK
		})
	}
}

// deletion returns the revision of a deletion that has happened after all that the model has.
func (w *writer) deletion(collection, name string) int64 {
	path := fmt.Sprintf("%s?watch=1&resourceVersion=%d&timeoutSeconds=10&fieldSelector=metadata.name%%3D%s", collection, w.model.latest, name) //passes: it is asked again
	for end := time.Now().Add(workload.Timeout); time.Now().Before(end); workload.Wait(w.t.Context(), 20*time.Millisecond) {
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, pick(w.random, w.urls)+path, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+adminToken)
		answer, err := w.client.Do(r)
		if err != nil {
			continue
		}
		var e struct {
			Type   string
			Object map[string]any
		}
		err = json.NewDecoder(answer.Body).Decode(&e)
		_ = answer.Body.Close()
		if err == nil && e.Type == "DELETED" {
			return revisionOf(&object{Object: e.Object})
		}
	}
	w.t.Fatalf("the deletion of %s/%s is not found", collection, name)
	return 0
}

// newObject returns an object with a value of its own.
func (w *writer) newObject(apiVersion, kind, namespace, name string) *object {
	w.values++
	o := &object{Object: map[string]any{}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetAnnotations(map[string]string{valueKey: strconv.Itoa(w.values)})
	return o
}

func pick[E any](random *rand.Rand, from []E) E { return from[random.IntN(len(from))] }

// once writes something at random.
func (w *writer) once() {
	switch n := w.random.IntN(100); {
	case n < 70:
		w.object(pick(w.random, []*kind{secrets, secrets, widgets}))
	case n < 85:
		w.binding(pick(w.random, namespaces))
	case n < 87:
		w.binding("")
	case n < 90:
		w.impersonation()
	case n < 95:
		w.role()
	default:
		w.part()
	}
}

func (w *writer) object(k *kind) {
	namespace, name := pick(w.random, namespaces), fmt.Sprint("o", w.random.IntN(5))
	if w.model.stateAt(k, namespace+"/"+name, w.model.latest) != nil && w.random.IntN(4) == 0 {
		w.remove(k, namespace, name)
		return
	}
	w.put(k, namespace, name, pick(w.random, []string{"red", "blue"}))
}

// put creates or updates an object, and returns its revision; 0 if that has not happened.
func (w *writer) put(k *kind, namespace, name, color string) int64 {
	w.writes++
	key := namespace + "/" + name
	o := w.newObject(apiVersion(k), k.name, namespace, name)
	o.SetLabels(map[string]string{colorKey: color})
	method := http.MethodPost
	if now := w.model.stateAt(k, key, w.model.latest); now != nil {
		method = http.MethodPut
		o.SetResourceVersion(strconv.FormatInt(now.revision, 10)) // custom resources need it
	}
	revision, begun, uid := w.write(method, k.path(namespace), name, o)
	if revision != 0 {
		w.model.objectChanged(k, key, state{revision, true, color, uid, o.GetAnnotations()[valueKey]})
		w.model.wrote(revision, begun)
	}
	return revision
}

func (w *writer) remove(k *kind, namespace, name string) {
	w.writes++
	if revision, begun, _ := w.write(http.MethodDelete, k.path(namespace), name, nil); revision != 0 {
		w.model.objectChanged(k, namespace+"/"+name, state{revision: revision})
		w.model.wrote(revision, begun)
	}
}

func apiVersion(k *kind) string {
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

// rules are random, and often in vain.
func (w *writer) rules() []rbacv1.PolicyRule {
	out := make([]rbacv1.PolicyRule, w.random.IntN(3))
	for i := range out {
		out[i] = rbacv1.PolicyRule{
			Verbs:     pick(w.random, [][]string{{"*"}, {"list", "watch"}, {"get", "list", "watch"}, {"list"}, {"watch"}}),
			APIGroups: pick(w.random, [][]string{{"*"}, {""}, {"", "example.com"}}),
			Resources: pick(w.random, [][]string{{"*"}, {"secrets"}, {"secrets", "widgets"}}),
		}
		if w.random.IntN(5) == 0 {
			out[i].ResourceNames = []string{"o1"}
		}
	}
	return out
}

// set puts a Go value into an object as JSON.
func (w *writer) set(o *object, field string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		w.t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		w.t.Fatal(err)
	}
	o.Object[field] = plain
}

// toggle creates an object of RBAC, or deletes or updates it if it exists, and returns the
// revision, and whether it exists then.
func (w *writer) toggle(plural, kindName, namespace, name string, exists, update bool, fill func(*object)) (revision int64, begun time.Time, now bool) {
	w.policies++
	collection := rbacPath + plural
	if namespace != "" {
		collection = rbacPath + "namespaces/" + namespace + "/" + plural
	}
	if exists && !update {
		revision, begun, _ = w.write(http.MethodDelete, collection, name, nil)
		return revision, begun, false
	}
	o := w.newObject(rbacv1.SchemeGroupVersion.String(), kindName, namespace, name)
	fill(o)
	method := http.MethodPost
	if exists {
		method = http.MethodPut
	}
	revision, begun, _ = w.write(method, collection, name, o)
	return revision, begun, true
}

// policyChanged has the model evaluate the policy after a write.
func (w *writer) policyChanged(revision int64, begun time.Time) {
	w.model.policyChanged(revision)
	w.model.wrote(revision, begun)
}

// binding creates, changes or deletes a binding in a namespace, or everywhere.
func (w *writer) binding(namespace string) {
	b := bound{namespace: namespace, role: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
		Name: pick(w.random, []string{"reader", "reader", "reader", "role-0", "role-1", aggregate})}}
	plural, kindName, name := "rolebindings", "RoleBinding", fmt.Sprint("binding-", w.random.IntN(3))
	if namespace == "" {
		plural, kindName = "clusterrolebindings", "ClusterRoleBinding"
	} else if w.random.IntN(4) == 0 {
		b.role.Kind, b.role.Name = "Role", "role-0"
	}
	key := namespace + "/" + name
	was, exists := w.model.policy.bindings[key]
	update := exists && w.random.IntN(3) == 0
	if update {
		b.role = was.role // it cannot be changed
	}
	for range 1 + w.random.IntN(2) {
		b.subjects = append(b.subjects, pick(w.random, subjects))
	}
	w.bind(plural, kindName, name, b, update)
}

// bind creates a binding, or deletes or updates it if it exists.
func (w *writer) bind(plural, kindName, name string, b bound, update bool) {
	key := b.namespace + "/" + name
	_, exists := w.model.policy.bindings[key]
	revision, begun, now := w.toggle(plural, kindName, b.namespace, name, exists, update, func(o *object) {
		w.set(o, "roleRef", b.role)
		w.set(o, "subjects", b.subjects)
	})
	if revision == 0 {
		return
	}
	if delete(w.model.policy.bindings, key); now {
		w.model.policy.bindings[key] = b
	}
	w.policyChanged(revision, begun)
}

// impersonation lets a user be another one, or not any more.
func (w *writer) impersonation() {
	const name = "impersonators"
	b := bound{role: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "impersonator"},
		subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "proxy"}}}
	w.bind("clusterrolebindings", "ClusterRoleBinding", name, b, false)
}

// role creates, changes or deletes a Role or a ClusterRole.
func (w *writer) role() {
	namespace, name := "", fmt.Sprint("role-", w.random.IntN(2))
	plural, kindName := "clusterroles", "ClusterRole"
	if w.random.IntN(2) == 0 {
		namespace, name, plural, kindName = pick(w.random, namespaces), "role-0", "roles", "Role"
	}
	w.setRole(plural, kindName, namespace, name, w.rules())
}

func (w *writer) setRole(plural, kindName, namespace, name string, rules []rbacv1.PolicyRule) {
	key := namespace + "/" + name
	_, exists := w.model.policy.roles[key]
	revision, begun, now := w.toggle(plural, kindName, namespace, name, exists, w.random.IntN(2) == 0, func(o *object) { w.set(o, "rules", rules) })
	if revision == 0 {
		return
	}
	if delete(w.model.policy.roles, key); now {
		w.model.policy.roles[key] = rules
	}
	w.policyChanged(revision, begun)
}

// part changes a ClusterRole that is aggregated, and waits until the server has done that.
func (w *writer) part() {
	name, rules := fmt.Sprint("part-", w.random.IntN(2)), w.rules()
	_, exists := w.parts[name]
	revision, begun, now := w.toggle("clusterroles", "ClusterRole", "", name, exists, w.random.IntN(2) == 0, func(o *object) {
		o.SetLabels(map[string]string{partLabel: "yes"})
		w.set(o, "rules", rules)
	})
	if revision == 0 {
		return
	}
	if delete(w.parts, name); now {
		w.parts[name] = rules
	}
	w.model.wrote(revision, begun)
	w.awaitAggregation(begun)
}

// awaitAggregation waits until the aggregated role has the rules of its parts.
func (w *writer) awaitAggregation(begun time.Time) {
	var want []rbacv1.PolicyRule // each once, in the order of the parts' names
	for _, name := range slices.Sorted(maps.Keys(w.parts)) {
		for _, r := range w.parts[name] {
			if !slices.ContainsFunc(want, func(other rbacv1.PolicyRule) bool { return reflect.DeepEqual(r, other) }) {
				want = append(want, r)
			}
		}
	}
	for end := time.Now().Add(workload.Timeout); time.Now().Before(end); workload.Wait(w.t.Context(), 2*time.Millisecond) {
		got, _ := w.insist(rbacPath + "clusterroles/" + aggregate)
		data, err := json.Marshal(got.Object["rules"])
		if err != nil {
			w.t.Fatal(err)
		}
		var have []rbacv1.PolicyRule
		if err := json.Unmarshal(data, &have); err != nil {
			w.t.Fatal(err)
		}
		if len(have) == len(want) && (len(have) == 0 || reflect.DeepEqual(have, want)) {
			if revision := revisionOf(got); revision > w.model.latest {
				w.model.policy.roles["/"+aggregate] = want
				w.policyChanged(revision, begun)
			}
			return
		}
	}
	w.t.Fatalf("the aggregated role does not get the rules %v", want)
}

// prepare writes what all rounds need.
func (w *writer) prepare() {
	create := func(path string, o *object) {
		begun := time.Now()
		got, code, err := w.request(http.MethodPost, path, o.Object)
		if err != nil || code >= 300 {
			w.t.Fatalf("POST %s: %d, %v, %v", path, code, got, err)
		}
		w.model.wrote(revisionOf(got), begun)
	}
	for _, namespace := range namespaces {
		create("/api/v1/namespaces", w.newObject("v1", "Namespace", "", namespace))
	}
	definition := w.newObject("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", widgets.plural+"."+widgets.group)
	w.set(definition, "spec", map[string]any{
		"group": widgets.group, "scope": "Namespaced", "names": map[string]string{"plural": widgets.plural, "singular": "widget", "kind": widgets.name},
		"versions": []any{map[string]any{"name": widgets.version, "served": true, "storage": true, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
	})
	create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
	w.awaitServed(widgets.path(""))
	readers := []rbacv1.PolicyRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{"", "example.com"}, Resources: []string{"secrets", "widgets"}}}
	w.setRole("clusterroles", "ClusterRole", "", "reader", readers)
	w.setRole("clusterroles", "ClusterRole", "", "impersonator", []rbacv1.PolicyRule{
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{"max"}}})
	aggregated := w.newObject(rbacv1.SchemeGroupVersion.String(), "ClusterRole", "", aggregate)
	w.set(aggregated, "aggregationRule", rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{partLabel: "yes"}}}})
	create(rbacPath+"clusterroles", aggregated)
	w.model.policy.roles["/"+aggregate] = nil
	w.impersonation()
}
