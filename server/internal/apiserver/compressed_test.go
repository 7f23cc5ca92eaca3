package apiserver

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCompressedObjectsAreShownAsOthers: whatever a client asks for, it gets the same bytes
// from a server that holds its objects compressed.
func TestCompressedObjectsAreShownAsOthers(t *testing.T) {
	plain := newCluster(t)
	compressed := newCluster(t, func(s *setup) { s.cache.CompressObjects = true })
	for _, c := range []*cluster{plain, compressed} {
		fill(t, c, 400)
	}
	if s := compressed.caches[compressed.pods].Stats(); s.HeldBytes > s.ObjectBytes/2 {
		t.Fatalf("objects of %d bytes take %d", s.ObjectBytes, s.HeldBytes)
	}
	const cborType, tableType = "application/cbor", "application/json;as=Table;g=meta.k8s.io;v=v1"
	compare := func(t *testing.T, path, accept, encoding string) {
		t.Helper()
		want, got := answerOf(t, plain, path, accept, encoding), answerOf(t, compressed, path, accept, encoding)
		if want.Code != 200 || got.Code != 200 || !bytes.Equal(want.Body.Bytes(), got.Body.Bytes()) {
			t.Errorf("%s as %s, %s: %d with %d bytes, and %d with %d bytes of compressed objects",
				path, accept, encoding, want.Code, want.Body.Len(), got.Code, got.Body.Len())
		}
	}
	one := listedPod(300)
	for _, path := range []string{
		"/api/v1/namespaces/" + one.Namespace + "/pods/" + one.Name,
		"/api/v1/pods?resourceVersion=0",
		"/api/v1/pods?limit=133",
		"/api/v1/namespaces/" + one.Namespace + "/pods?resourceVersion=0",
		"/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3Dnode-7",
		"/api/v1/pods?resourceVersion=0&labelSelector=app.kubernetes.io/name%3Dservice-1",
	} {
		for _, accept := range []string{"application/json", protobufType, "application/yaml", cborType, tableType, metaListType} {
			if strings.HasSuffix(path, one.Name) && accept == metaListType {
				continue
			}
			compare(t, path, accept, "identity")
			if accept == "application/json" || accept == protobufType {
				compare(t, path, accept, "gzip")
			}
		}
	}
	for _, accept := range []string{"application/json", protobufType, tableType} {
		t.Run("watch as "+accept, func(t *testing.T) {
			t.Parallel()
			compare(t, "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1", accept, "identity") //passes: the watch ends by it
		})
	}
}

func answerOf(t *testing.T, c *cluster, path, accept, encoding string) *httptest.ResponseRecorder {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+testToken)
	r.Header.Set("Accept", accept)
	r.Header.Set("Accept-Encoding", encoding)
	w := httptest.NewRecorder()
	c.server.ServeHTTP(w, r)
	return w
}
