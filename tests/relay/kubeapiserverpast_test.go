package relay

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

const widgetsPath = "/apis/example.com/v1/namespaces/past/widgets"

// fillsFromPast: kube-apiserver lists from etcd states that its watch cache has no history for any more. A relay that begins when
// clients come with versions fills its cache with a state that kube-apiserver has the changes since, and serves their watches.
func fillsFromPast(t *testing.T, direct, _, _ front) {
	newNamespace(t, direct, "past")
	admin := direct.Client(client.Options{})
	version := write(t, admin, http.MethodPost, widgetsPath, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"one"},"spec":{"replicas":0}}`)
	const before, after = 300, 30 // a watch cache of kube-apiserver has room for 100 changes at first
	var want []string
	for i := 1; i <= before+after; i++ {
		changed := write(t, admin, http.MethodPatch, widgetsPath+"/one", fmt.Sprintf(`{"spec":{"replicas":%d}}`, i))
		if i == before {
			version = changed
		} else if i > before {
			want = append(want, changed)
		}
	}
	if !listsExactly(t, admin, "1") || watchesFrom(t, admin, "1") {
		t.Fatal("kube-apiserver does not list the first version, or watches from it: this test has nothing to say")
	}
	relay := startRelay(t, direct.Config())
	if got := versionsSince(t, relay.Client(client.Options{}), version, len(want)); !slices.Equal(got, want) {
		t.Errorf("the watch has brought the versions %q, want %q", got, want)
	}
	if passed := metric(t, relay, "levelwire_relay_passed_on_total"); passed != 0 {
		t.Errorf("%v requests were passed on", passed)
	}
	if lists := metric(t, relay, "levelwire_relay_lists_total"); lists != 1 {
		t.Errorf("the cache was filled %v times", lists)
	}
}

// listsExactly reports whether a server lists all widgets as they were at a version.
func listsExactly(t *testing.T, c *client.Client, version string) bool {
	t.Helper()
	response := widgets(t, c, "/apis/example.com/v1/widgets?resourceVersionMatch=Exact&resourceVersion="+version)
	return response.StatusCode == http.StatusOK
}

// watchesFrom reports whether a server has the changes of widgets since a version: that the watch begins with one.
func watchesFrom(t *testing.T, c *client.Client, version string) bool {
	t.Helper()
	response := widgets(t, c, "/apis/example.com/v1/widgets?watch=true&timeoutSeconds=1&resourceVersion="+version) //passes: the watch ends by it
	if response.StatusCode != http.StatusOK {
		return false
	}
	eventType, _, err := jsonFrames(response.Body)()
	return err == nil && eventType != "ERROR"
}

// versionsSince returns the versions of the first n events of a watch of widgets.
func versionsSince(t *testing.T, c *client.Client, version string, n int) (versions []string) {
	t.Helper()
	response := widgets(t, c, widgetsPath+"?watch=true&resourceVersion="+version)
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(response.Body)
		t.Fatalf("%s, %v\n%s", response.Status, err, text)
	}
	for decoder := json.NewDecoder(response.Body); len(versions) < n; {
		var event struct{ Object metav1.PartialObjectMetadata }
		if err := decoder.Decode(&event); err != nil {
			t.Fatalf("after %d events: %v", len(versions), err)
		}
		versions = append(versions, event.Object.ResourceVersion)
	}
	return versions
}

// widgets asks for widgets. The answer is open until the end of the test.
func widgets(t *testing.T, c *client.Client, path string) *http.Response {
	t.Helper()
	response, err := c.Raw(t.Context(), client.RawRequest{Path: path, Header: http.Header{"Accept": {"application/json"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}
