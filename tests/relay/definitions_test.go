package relay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/levelwiretest"
)

// boxes is a definition, with what a test changes of it in capitals.
const boxes = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boxes.relay.example.com"},"spec":{
	"group":"relay.example.com","scope":"SCOPE","names":{"plural":"boxes","singular":"box","kind":"Box","listKind":"BoxList"},"versions":[
	{"name":"v1","served":true,"storage":true,"additionalPrinterColumns":[COLUMNS],"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{PROPERTIES}}}}}},
	{"name":"v2","served":SERVED,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{PROPERTIES}}}}}}]}}`

func boxesAs(scope, columns, properties string, servesV2 bool) string {
	return strings.NewReplacer("SCOPE", scope, "COLUMNS", columns, "PROPERTIES", properties, "SERVED", fmt.Sprint(servesV2), "\n", "", "\t", "").Replace(boxes)
}

const (
	boxColumn = `{"name":"Size","type":"integer","jsonPath":".spec.size"}`
	boxSize   = `"size":{"type":"integer"}`
)

// TestDefinitionsChange: the definition of a kind that relays have cached is changed, and what lists and tables show through
// them is what the upstream shows, also of objects that have not changed.
func TestDefinitionsChange(t *testing.T) {
	upstream := levelwiretest.Start(t)
	one := startRelay(t, upstream.Config())
	changeDefinitions(t, upstream, one, startRelay(t, one.Config()))
}

// changeDefinitions makes, changes and deletes the definition of a kind that is cached: lists, tables and watches show
// what the first server shows.
func changeDefinitions(t *testing.T, servers ...served) {
	direct, one := servers[0], servers[1]
	newNamespace(t, direct, "definitions")
	admin := direct.Client(client.Options{})
	definitions := client.For[*apiextensionsv1.CustomResourceDefinition](admin)
	const all = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	const v1, v2 = "/apis/relay.example.com/v1/namespaces/definitions/boxes", "/apis/relay.example.com/v2/namespaces/definitions/boxes"
	apply := func(definition string) {
		t.Helper()
		request := client.RawRequest{Method: http.MethodPatch, Path: all + "/boxes.relay.example.com?fieldManager=test&force=true", Body: []byte(definition), Header: http.Header{"Content-Type": {"application/apply-patch+yaml"}}}
		response, err := admin.Raw(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode >= http.StatusMultipleChoices {
			t.Fatal(response.Status)
		}
	}
	// same waits until all servers answer alike, with an answer for which done holds.
	same := func(what, path, accept string, done func(body string) bool) {
		t.Helper()
		testwait.Stable(t, what, func() (any, bool) {
			var seen []string
			for _, s := range servers {
				response, body := fetch(t, s, path, http.Header{"Accept": {accept}})
				seen = append(seen, response.Status+" "+withoutAges(body))
			}
			return strings.Join(seen, "\n"), done(seen[0]) && len(slices.Compact(slices.Clone(seen))) == 1
		})
	}
	has := func(part string) func(string) bool {
		return func(body string) bool { return strings.Contains(body, part) }
	}

	apply(boxesAs("Namespaced", boxColumn, boxSize, false))
	same("the kind is served", v1, "application/json", has("BoxList"))
	write(t, admin, http.MethodPost, v1, `{"apiVersion":"relay.example.com/v1","kind":"Box","metadata":{"name":"first"},"spec":{"size":1}}`)
	same("an object is listed", v1, "application/json", has("first"))
	same("a table is listed", v1, asTable, has("Size"))
	same("v2 is not served", v2, "application/json", has("404"))

	w, err := client.Metadata(one.Client(client.Options{}), schema.GroupVersionResource{Group: "relay.example.com", Version: "v1", Resource: "boxes"}).Namespace("definitions").Watch(t.Context(), metav1.ListOptions{AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	events := testwait.Follow(t, w)
	apply(boxesAs("Namespaced", boxColumn+`,{"name":"Color","type":"string","jsonPath":".spec.color"}`, boxSize+`,"color":{"type":"string","default":"red"}`, true))
	same("the table has the new column", v1, asTable, has("Color"))
	same("the new default is listed", v1, "application/json", has("red"))
	same("the new default is listed at any version", v1+"?resourceVersion=0", "application/json", has("red"))
	same("v2 is served", v2, "application/json", has("red"))
	write(t, admin, http.MethodPost, v2, `{"apiVersion":"relay.example.com/v2","kind":"Box","metadata":{"name":"second"},"spec":{"size":2}}`)
	same("an object of v2 is listed in v1", v1, "application/json", has("second"))
	same("an object of v2 is listed", v2, "application/json", has("second"))
	t.Logf("the watch has brought %d events while the definition changed", len(events.Seen()))

	apply(boxesAs("Namespaced", boxColumn, boxSize, false))
	same("the color is pruned", v1, "application/json", func(body string) bool { return strings.Contains(body, "second") && !strings.Contains(body, "red") })
	same("v2 is not served any more", v2, "application/json", has("404"))

	if err := definitions.Delete(t.Context(), "boxes.relay.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	same("the kind is not served any more", v1, "application/json", has("404"))
	apply(boxesAs("Cluster", boxColumn, boxSize, false))
	const cluster = "/apis/relay.example.com/v1/boxes"
	same("the kind is served for the cluster", cluster, "application/json", has("BoxList"))
	write(t, admin, http.MethodPost, cluster, `{"apiVersion":"relay.example.com/v1","kind":"Box","metadata":{"name":"third"},"spec":{"size":3}}`)
	same("an object of the cluster is listed", cluster, "application/json", has("third"))
	same("there is no namespace", v1, "application/json", has("404"))
	if err := definitions.Delete(t.Context(), "boxes.relay.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	same("the kind is gone", cluster, "application/json", has("404"))
}

// withoutAges returns a body with its members in order, without what depends on when it was made: the version of a list, and cells
// of a Table.
func withoutAges(body string) string {
	var object map[string]any
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		return body
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "resourceVersion")
		if metadata["continue"] == "" { // which kube-apiserver says of custom resources, and leaves out otherwise
			delete(metadata, "continue")
		}
	}
	if object["kind"] == "Table" {
		var table seenWatch
		table.dropAges(object)
		object["columns"] = table.columns
	}
	return text(object)
}
