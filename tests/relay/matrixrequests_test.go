package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
)

// matrixRequest is a request that is made at both servers.
type matrixRequest struct {
	method, path              string
	accept, contentType, body string
	shows                     content
}

// content says which objects of an answer are compared.
type content int

const (
	showsNothing content = iota // only the code and the error
	showsObject
	showsList
	showsTable
	showsEvents // the state with which a watch begins
	showsReview // the status
)

func (q matrixRequest) String() string {
	return strings.TrimSpace(q.method + " " + q.path + " " + q.accept)
}

const (
	asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	asMetadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
	withState  = "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
)

// requests are all that is asked of a kind.
func (k *matrixKind) requests() []matrixRequest {
	all := append(k.reads(), k.writes()...)
	for _, sub := range k.subresources {
		path := k.path("a") + "/" + k.name + strings.TrimPrefix(sub.Name, k.Name)
		shows := showsNothing
		if slices.Contains(sub.Verbs, "get") && !strings.HasSuffix(sub.Name, "/log") {
			shows = showsObject
		}
		all = append(all,
			matrixRequest{method: http.MethodGet, path: path, shows: shows},
			matrixRequest{method: http.MethodPost, path: path + "?dryRun=All", body: "{}", contentType: "application/json"},
			matrixRequest{method: http.MethodPut, path: path + "?dryRun=All", body: k.body(func(*unstructured.Unstructured) {}), contentType: "application/json"},
			matrixRequest{method: http.MethodPatch, path: path + "?dryRun=All", body: "{}", contentType: "application/merge-patch+json"},
			matrixRequest{method: http.MethodDelete, path: path + "?dryRun=All"},
		)
	}
	return all
}

// reads are the lists, watches and gets.
func (k *matrixKind) reads() []matrixRequest {
	in, object := k.path("a"), k.path("a")+"/"+k.name
	all := []matrixRequest{
		{path: in, shows: showsList},
		{path: in + "?resourceVersion=0", shows: showsList},
		{path: in + "?limit=1", shows: showsList},
		{path: in + "?labelSelector=matrix%3Dpart", shows: showsList},
		{path: in + "?fieldSelector=metadata.name%3D" + k.name, shows: showsList},
		{path: in + "?fieldSelector=spec.color%3Dred", shows: showsList}, // which one kind can be selected by
		{path: in, accept: asTable, shows: showsTable},
		{path: in, accept: asMetadata, shows: showsList},
		{path: in + withState, shows: showsEvents},
		{path: in + withState + "&labelSelector=matrix%3Dpart", shows: showsEvents},
		{path: in + withState + "&fieldSelector=metadata.name%3D" + k.name, shows: showsEvents},
		{path: in + "?watch=true&resourceVersion=none"}, // no version
		{path: strings.Replace(in, root(k.groupVersion), root(k.groupVersion)+"/watch", 1) + withState, shows: showsEvents},
		{path: object, shows: showsObject},
		{path: object + "?resourceVersion=0", shows: showsObject},
		{path: object + withState, shows: showsObject}, // a get
		{path: k.path("a") + "/none"},
		{path: k.path("a") + "/none?resourceVersion=0"},
	}
	if k.Namespaced {
		all = append(all,
			matrixRequest{path: k.path(""), shows: showsList}, matrixRequest{path: k.path("") + withState, shows: showsEvents},
			matrixRequest{path: k.path("b"), shows: showsList}, matrixRequest{path: k.path("b") + withState, shows: showsEvents},
			matrixRequest{path: k.path("b") + "/" + k.name + "?resourceVersion=0", shows: showsObject})
	}
	for i := range all {
		all[i].method = http.MethodGet
	}
	return all
}

// writes are dry runs.
func (k *matrixKind) writes() []matrixRequest {
	in, object := k.path("a"), k.path("a")+"/"+k.name
	created := matrixRequest{method: http.MethodPost, path: in + "?dryRun=All", contentType: "application/json", body: k.body(func(o *unstructured.Unstructured) {
		o.SetName("new")
		o.SetUID("")
		o.SetResourceVersion("")
		if k.Kind == "Job" { // these name the Job that was copied
			unstructured.RemoveNestedField(o.Object, "spec", "selector")
			unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "labels")
		}
	})}
	if strings.HasSuffix(k.Kind, "Review") {
		created.shows = showsReview
	}
	return []matrixRequest{
		created,
		{method: http.MethodPut, path: object + "?dryRun=All", contentType: "application/json", body: k.body(func(*unstructured.Unstructured) {})},
		{method: http.MethodPatch, path: object + "?dryRun=All", contentType: "application/merge-patch+json", body: `{"metadata":{"labels":{"x":"y"}}}`},
		{
			method: http.MethodPatch, path: object + "?dryRun=All&fieldManager=m&force=true", contentType: "application/apply-patch+yaml",
			body: fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"labels":{"x":"y"}}}`, k.groupVersion, k.Kind, k.name),
		},
		{method: http.MethodDelete, path: object + "?dryRun=All"},
		{method: http.MethodDelete, path: in + "?dryRun=All"},
		{method: http.MethodDelete, path: in + "?dryRun=All&fieldSelector=metadata.name%3D" + k.name},
		{method: http.MethodPost, path: object}, // no verb of the path
	}
}

// otherRequests are about paths that are no resources, or that are not served.
func otherRequests() (all []matrixRequest) {
	for _, path := range []string{
		"/", "/api", "/api/v1", "/api/v2", "/apis", "/apis/", "/apis/apps", "/apis/apps/v1", "/apis/apps/v2", "/apis/example.com/v1", "/apis/none.example.com/v1/things",
		"/api/v1/nothings", "/api/v1/namespaces/a/nothings/one", "/version", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/example.com/v1",
		"/debug/pprof/", "/openid/v1/jwks", "/.well-known/openid-configuration", "/logs", "/nothing",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
			all = append(all, matrixRequest{method: method, path: path})
		}
	}
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/metrics"} { // which the relay has of its own
		all = append(all, matrixRequest{method: http.MethodGet, path: path})
	}
	return all
}

// send makes a request.
func (q matrixRequest) send(ctx context.Context, c *client.Client) (*answer, error) {
	header := http.Header{"Accept": {"application/json"}}
	if q.accept != "" {
		header.Set("Accept", q.accept)
	}
	if q.contentType != "" {
		header.Set("Content-Type", q.contentType)
	}
	request := client.RawRequest{Method: q.method, Path: q.path, Header: header}
	if q.body != "" {
		request.Body = []byte(q.body)
	}
	response, err := c.Raw(ctx, request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	a := &answer{code: response.StatusCode, warnings: response.Header.Values("Warning")}
	a.mediaType, _, _ = mime.ParseMediaType(response.Header.Get("Content-Type"))
	if a.code == http.StatusOK && q.shows == showsEvents {
		a.objects, err = readState(response.Body)
		return a, err
	}
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return nil, err
	case a.code >= http.StatusBadRequest:
		_ = json.Unmarshal(body, &a.status) // of the health checks, it is text
	case q.shows != showsNothing:
		a.objects, err = q.shows.read(body)
	}
	return a, err
}

// read returns what is compared of an answer.
func (s content) read(body []byte) (objects []string, err error) {
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, err
	}
	switch s {
	case showsReview:
		return []string{text(object["status"])}, nil
	case showsList:
		items, _ := object["items"].([]any)
		for _, item := range items {
			objects = append(objects, text(item))
		}
		metadata, _ := object["metadata"].(map[string]any)
		more := metadata["continue"] != nil && metadata["continue"] != ""
		return append(objects, text([]any{object["apiVersion"], object["kind"], more, metadata["remainingItemCount"]})), nil
	case showsTable:
		return readTable(body)
	}
	return []string{text(object)}, nil
}

// ages are the columns whose cells depend on when a row is shown.
var ages = []string{"Age", "Last Seen", "First Seen", "Duration", "Last Schedule", "TimeAdded"}

// readTable returns the columns and the rows.
func readTable(body []byte) ([]string, error) {
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		return nil, err
	}
	lines := []string{text(table.ColumnDefinitions)}
	for _, row := range table.Rows {
		for i := range row.Cells {
			if i < len(table.ColumnDefinitions) && slices.Contains(ages, table.ColumnDefinitions[i].Name) {
				row.Cells[i] = nil
			}
		}
		var object any // its members in order
		if len(row.Object.Raw) > 0 {
			if err := json.Unmarshal(row.Object.Raw, &object); err != nil {
				return nil, err
			}
		}
		lines = append(lines, text(row.Cells)+text(object))
	}
	return lines, nil
}

// readState reads the events with which a watch begins.
func readState(body io.Reader) (events []string, err error) {
	for decoder := json.NewDecoder(body); ; {
		var event struct {
			Type   apiwatch.EventType         `json:"type"`
			Object *unstructured.Unstructured `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			return nil, fmt.Errorf("after %d events: %w", len(events), err)
		}
		switch {
		case event.Type == apiwatch.Bookmark && event.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
			return events, nil
		case event.Type == apiwatch.Bookmark:
			continue
		}
		events = append(events, string(event.Type)+" "+text(event.Object))
		if event.Type == apiwatch.Error {
			return events, nil
		}
	}
}

// text is JSON with its members in order.
func text(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // it has been decoded from JSON
	}
	return strings.TrimSpace(b.String())
}
