package differential

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
)

// leases is a kind of which an update without a version is refused.
func leases(t *testing.T) (*catalog, *object) {
	t.Helper()
	c, k := widgets(t)
	k.Kind, k.plural = "Lease", "leases"
	k.verbs = []string{create, update}
	return c, widget(t, k)
}

func TestVersionIsFilledIn(t *testing.T) {
	c, o := leases(t)
	all := names(generate([]*object{o}, []string{create, update}, 1, 0))
	for _, want := range []string{
		`create example.com/v1 Lease small spec.size=-1`,
		`update example.com/v1 Lease small metadata.resourceVersion=stored`,
		`update example.com/v1 Lease small spec.size=-1 metadata.resourceVersion=stored`,
		`update example.com/v1 Lease small metadata=null`,
	} {
		if !slices.Contains(all, want) {
			t.Errorf("missing: %s", want)
		}
	}
	of := func(name string) string {
		r, err := parseRequest(c, name)
		if err != nil {
			t.Fatal(err)
		}
		return r.withVersion().String()
	}
	const odd = `update example.com/v1 Lease small metadata.resourceVersion="1"`
	if got := of(odd); got != odd {
		t.Errorf("an odd version was made %s", got)
	}
}

// TestAskFilled: the object is at version 7, and after the first request of a client at 8,
// until which it is at odds with the client's.
func TestAskFilled(t *testing.T) {
	c, _ := leases(t)
	var sent []string
	version := 7
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			got, _ := get(body, versionPath)
			sent = append(sent, got.(string))
			version = 8
			if got != "8" {
				w.WriteHeader(http.StatusConflict)
			}
		}
		_, _ = w.Write([]byte(`{"metadata":{"name":"example","resourceVersion":"` + strconv.Itoa(version) + `"}}`))
	}))
	defer server.Close()
	r, err := parseRequest(c, `update example.com/v1 Lease small spec.size=-1 metadata.resourceVersion=stored`)
	if err != nil {
		t.Fatal(err)
	}
	s := &side{name: "test", url: server.URL, client: server.Client()}
	a, err := s.ask(context.Background(), r, decode(t, `{"metadata":{"name":"example"}}`))
	if err != nil || a.Code != http.StatusOK || !slices.Equal(sent, []string{"7", "8"}) {
		t.Errorf("sent %q: %v, %v", sent, a, err)
	}
}

// TestVersionDemanded: what is refused for want of a version says nothing of anything else.
func TestVersionDemanded(t *testing.T) {
	r, err := openRecording(recorded)
	if err != nil {
		t.Fatal(err)
	}
	requests, err := r.requests()
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, q := range requests {
		causes := r.answer(q.String()).causes()
		unversioned := slices.ContainsFunc(causes, func(c cause) bool {
			return c.Field == "metadata.resourceVersion" && c.Message == "Invalid value: 0: must be specified for an update"
		})
		if unversioned && !matchesKind(versionDemanded, q.kind.String()) {
			missing[q.kind.String()] = true
		}
	}
	if len(missing) > 0 {
		t.Errorf("versionDemanded lacks %v", slices.Sorted(maps.Keys(missing)))
	}
}
