package relay

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/client"
)

// matrixKind is a kind in one version, as the upstream's discovery has it, with an object.
type matrixKind struct {
	metav1.APIResource
	groupVersion string
	subresources []metav1.APIResource
	name         string
	object       *unstructured.Unstructured // nil if the kind is not stored
}

// servedKinds returns what the upstream serves.
func servedKinds(t *testing.T, admin *client.Client) (kinds []*matrixKind) {
	t.Helper()
	groupVersions := []string{"v1"}
	var groups metav1.APIGroupList
	readJSON(t, admin, "/apis", &groups)
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			groupVersions = append(groupVersions, version.GroupVersion)
		}
	}
	for _, groupVersion := range groupVersions {
		var list metav1.APIResourceList
		readJSON(t, admin, root(groupVersion), &list)
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				k := &matrixKind{APIResource: r, groupVersion: groupVersion, name: "one"}
				k.findObject(t, admin)
				kinds = append(kinds, k)
			}
		}
		for _, r := range list.APIResources {
			if parent, _, ok := strings.Cut(r.Name, "/"); ok {
				i := slices.IndexFunc(kinds, func(k *matrixKind) bool { return k.groupVersion == groupVersion && k.Name == parent })
				kinds[i].subresources = append(kinds[i].subresources, r)
			}
		}
	}
	return kinds
}

// root is the path of a group and version.
func root(groupVersion string) string {
	if groupVersion == "v1" {
		return "/api/v1"
	}
	return "/apis/" + groupVersion
}

// path returns that of a collection: of a namespace, or of all.
func (k *matrixKind) path(namespace string) string {
	path := root(k.groupVersion)
	if k.Namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + k.Name
}

// findObject picks an object, "one" if there is one.
func (k *matrixKind) findObject(t *testing.T, admin *client.Client) {
	t.Helper()
	if !slices.Contains(k.Verbs, "list") {
		return
	}
	var list unstructured.UnstructuredList
	readJSON(t, admin, k.path("a"), &list)
	if len(list.Items) == 0 {
		t.Errorf("%s %s: testdata/every-kind.yaml has no object of it", k.groupVersion, k.Name)
		return
	}
	i := max(slices.IndexFunc(list.Items, func(o unstructured.Unstructured) bool { return o.GetName() == k.name }), 0)
	k.object = &list.Items[i]
	k.object.SetAPIVersion(k.groupVersion)
	k.object.SetKind(k.Kind)
	k.name = k.object.GetName()
}

// body is the object to write, changed by change.
func (k *matrixKind) body(change func(o *unstructured.Unstructured)) string {
	o := k.object
	if o == nil {
		return k.review()
	}
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	change(o)
	encoded, err := json.Marshal(o)
	if err != nil {
		panic(err) // it has been decoded from JSON
	}
	return string(encoded)
}

// review is the body of what is only created.
func (k *matrixKind) review() string {
	spec := map[string]string{
		"SubjectAccessReview":      `"spec":{"user":"jane","groups":["reader"],"resourceAttributes":{"namespace":"a","verb":"list","resource":"pods"}}`,
		"LocalSubjectAccessReview": `"spec":{"user":"jane","groups":["reader"],"resourceAttributes":{"namespace":"a","verb":"list","resource":"pods"}}`,
		"SelfSubjectAccessReview":  `"spec":{"resourceAttributes":{"namespace":"a","verb":"list","resource":"pods"}}`,
		"SelfSubjectRulesReview":   `"spec":{"namespace":"a"}`,
		"TokenReview":              `"spec":{"token":"wrong"}`,
		"Binding":                  `"target":{"kind":"Node","name":"one"}`,
	}[k.Kind]
	head := `{"apiVersion":"` + k.groupVersion + `","kind":"` + k.Kind + `","metadata":{"name":"one"}`
	if strings.HasSuffix(k.Kind, "Review") {
		head = `{"apiVersion":"` + k.groupVersion + `","kind":"` + k.Kind + `"`
	}
	if spec == "" {
		return head + "}"
	}
	return head + "," + spec + "}"
}

// readJSON reads what an administrator gets.
func readJSON(t *testing.T, admin *client.Client, path string, into any) {
	t.Helper()
	response, err := admin.Raw(t.Context(), client.RawRequest{Path: path, Header: http.Header{"Accept": {"application/json"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, response.Status, err)
	}
}
