package request_test

import (
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// FuzzListOptions holds that whatever a query says is either understood or the
// client's error, and that continue tokens and names cannot break it.
func FuzzListOptions(f *testing.F) {
	for _, seed := range []string{
		"", "limit=5&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0",
		"resourceVersion=5&resourceVersionMatch=Exact", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		"labelSelector=a%3Db,c+in+(d,e),!f,g>5&fieldSelector=metadata.name%3Dx,spec.nodeName!%3Dy",
		"shardSelector=" + url.QueryEscape("shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')"), "timeoutSeconds=99999999999&limit=-1", "timeoutSeconds=-5", "labelSelector=%%",
	} {
		f.Add(seed, "")
		f.Add(seed, "x")
	}
	pods := builtin.Table().Lookup("", "v1", "pods")
	reader, err := read.New(read.Config{
		Store: struct{ storage.Reader }{}, // it is not asked
		Cache: func(*resource.Resource) *watchcache.Cache { return nil },
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q := &request.Info{Resource: pods, Namespace: "a", Name: name, Query: query}
		opts, err := request.ListOptions(q.Query)
		if err != nil {
			if got := status.Of(err); got.Code != 400 {
				t.Fatalf("%q is answered with %d: %v", text, got.Code, err)
			}
			return
		}
		_, listErr := reader.List(t.Context(), q.Scope(), &opts)
		_, watchErr := reader.Watch(q.Scope(), &opts)
		for _, err := range []error{listErr, watchErr} {
			// Without a cache, what is understood is answered with a 429.
			if got := status.Of(err); got.Code != 400 && got.Code != 422 && !apierrors.IsTooManyRequests(err) {
				t.Fatalf("%q is answered with %d: %v", text, got.Code, err)
			}
		}
		if _, err := q.Scope().Selection(&opts); err != nil && status.Of(err).Code != 400 && status.Of(err).Code != 422 {
			t.Fatalf("%q selects %v", text, err)
		}
	})
}
