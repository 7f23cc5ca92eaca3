package apiserver

import (
	"net/url"
	"testing"

	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/status"
)

// FuzzListOptions holds that whatever a query says is either understood or the
// client's error, and that continue tokens and names cannot break it.
func FuzzListOptions(f *testing.F) {
	for _, seed := range []string{
		"", "limit=5&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0",
		"resourceVersion=5&resourceVersionMatch=Exact", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		"labelSelector=a%3Db,c+in+(d,e),!f,g>5&fieldSelector=metadata.name%3Dx,spec.nodeName!%3Dy",
		"shardSelector=" + url.QueryEscape(halves[0]), "timeoutSeconds=99999999999&limit=-1", "timeoutSeconds=-5", "labelSelector=%%",
	} {
		f.Add(seed, "")
		f.Add(seed, "x")
	}
	pods := builtin.Table().Lookup("", "v1", "pods")
	f.Fuzz(func(t *testing.T, text, name string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q := &request{resource: pods, namespace: "a", name: name, query: query}
		o, err := parseListOptions(q)
		for _, check := range []func() error{o.validateList, o.validateWatch} {
			if err == nil {
				err = check()
			}
		}
		if err == nil {
			_, err = parseVersion(o.version)
		}
		if err == nil && o.token != "" {
			_, err = decodeContinue(o.token)
		}
		if err != nil {
			if status := status.Of(err); status.Code != 400 && status.Code != 422 {
				t.Fatalf("%q is answered with %d: %v", text, status.Code, err)
			}
			return
		}
		if o.timeout < 0 || o.limit < 0 {
			t.Fatalf("%q means a timeout of %s and a limit of %d", text, o.timeout, o.limit)
		}
		if selection, err := o.selection(q); err != nil || selection.Namespace != "a" && selection.Namespace == "" {
			t.Fatalf("%q selects %+v, %v", text, selection, err)
		}
	})
}
