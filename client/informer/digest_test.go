package informer

import (
	"cmp"
	"context"
	"hash/maphash"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
)

// A comparison with a page that cannot be one of its list is given up: it would delete
// what the page lacks.
func TestDigestOfBrokenPages(t *testing.T) {
	const first = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9","continue":"a|b"},"items":[{"metadata":{"name":"a"}}]}`
	item := func(version string) string {
		return `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"` + version + `"},"items":[{"metadata":{"name":"b"}}]}`
	}
	const empty = `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"12"},"items":[]}`
	for _, test := range []struct {
		name       string
		namespaces []string
		pages      map[string]string // by path and continue token
		want       string            // the latest version
		first      string            // the earliest one, if it is another
	}{
		{name: "two pages", pages: map[string]string{"/pods ": first, "/pods a|b": item("9")}, want: "9"},
		{name: "two namespaces, one of them empty", namespaces: []string{"x", "y", "z"},
			pages: map[string]string{"x/pods ": first, "x/pods a|b": item("9"), "y/pods ": empty, "z/pods ": strings.Replace(item("8"), `"b"`, `"c"`, 1)}, want: "12", first: "8"},
		{name: "another version", pages: map[string]string{"/pods ": first, "/pods a|b": item("10")}},
		{name: "no version", pages: map[string]string{"/pods ": first, "/pods a|b": item("")}},
		{name: "no version at all", pages: map[string]string{"/pods ": item("")}},
		{name: "no items", pages: map[string]string{"/pods ": first, "/pods a|b": strings.Replace(empty, "12", "9", 1)}},
		{name: "tokens in turn", pages: map[string]string{"/pods ": first, "/pods a|b": strings.Replace(first, "a|b", "c", 1), "/pods c": first}},
		{name: "objects once more", pages: map[string]string{"/pods ": first, "/pods a|b": strings.NewReplacer("a|b", "c", `"a"`, `"b"`).Replace(first), "/pods c": item("9")}},
		{name: "nothing", pages: map[string]string{"/pods ": first, "/pods a|b": `{}`}},
		{name: "in one namespace of several", namespaces: []string{"x", "y"}, pages: map[string]string{"x/pods ": first, "x/pods a|b": `{}`, "y/pods ": item("10")}},
		{name: "an object without a name", pages: map[string]string{"/pods ": strings.Replace(item("9"), `"name":"b"`, `"uid":"1"`, 1)}},
		{name: "an empty object", pages: map[string]string{"/pods ": first, "/pods a|b": strings.Replace(item("9"), `{"metadata":{"name":"b"}}`, `{}`, 1)}},
		{name: "an object of another namespace", namespaces: []string{"x", "y"},
			pages: map[string]string{"x/pods ": item("9"), "y/pods ": strings.Replace(item("10"), `{"name":"b"}`, `{"namespace":"x","name":"c"}`, 1)}},
		{name: "no version in one namespace of several", namespaces: []string{"x", "y"}, pages: map[string]string{"x/pods ": item("10"), "y/pods ": item("")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				for path, page := range test.pages {
					if strings.HasSuffix(r.URL.Path+" "+r.URL.Query().Get("continue"), path) {
						if namespace, _, several := strings.Cut(path, "/"); several && namespace != "" {
							page = strings.ReplaceAll(page, `{"name"`, `{"namespace":"`+namespace+`","name"`)
						}
						_, _ = io.WriteString(w, page)
						return
					}
				}
				t.Errorf("not expected: %s", r.URL)
			}))
			defer server.Close()
			c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
			must(t, err)
			defer c.CloseIdleConnections()
			checker := &consistencyChecker[*corev1.Pod]{seed: maphash.MakeSeed(),
				opts: checkWith(time.Hour, c, client.For[*corev1.Pod](c), func() ListOptions { return ListOptions{Namespaces: test.namespaces} })}
			got, err := checker.digest(t.Context(), func(string, string) {})
			if (err != nil) != (test.want == "") || err == nil && (got.last != test.want || got.first != cmp.Or(test.first, test.want)) {
				t.Errorf("got versions %q to %q, %v", got.first, got.last, err)
			}
		})
	}
}

// A server that has always another page does not fill the memory.
func TestDigestWithoutAnEnd(t *testing.T) {
	for name, items := range map[string]int{"of objects": digestPage, "of empty pages": 0} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			pages := 0
			checker := &consistencyChecker[*corev1.Pod]{seed: maphash.MakeSeed(), maxObjects: 5 * digestPage}
			checker.opts.List = func(context.Context, metav1.ListOptions) (*client.List[*metav1.PartialObjectMetadata], error) {
				if pages++; pages > 1000 {
					cancel()
					return nil, ctx.Err()
				}
				list := &client.List[*metav1.PartialObjectMetadata]{}
				list.ResourceVersion, list.Continue = "4", strconv.Itoa(pages)
				for n := range items {
					list.Items = append(list.Items, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: strconv.Itoa(pages*digestPage + n)}})
				}
				return list, nil
			}
			if _, err := checker.digest(ctx, func(string, string) {}); err == nil || ctx.Err() != nil || pages > 51 {
				t.Errorf("%v after %d pages", err, pages)
			}
		})
	}
}
