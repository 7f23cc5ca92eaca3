package apiserver

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"k8s.io/apimachinery/pkg/runtime"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/storage"
)

// inflated returns the body as it was before compression.
func (r reply) inflated(t testing.TB) []byte {
	t.Helper()
	if r.header.Get("Content-Encoding") != "gzip" {
		return r.body
	}
	z, err := gzip.NewReader(bytes.NewReader(r.body))
	must(t, err)
	body, err := io.ReadAll(z)
	must(t, err)
	return body
}

var listForms = []string{
	"application/json", "application/json;pretty=1", protobufType, "application/cbor", "application/yaml",
	metaListType, "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
	"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
	"application/cbor;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
	"application/json;as=Table;v=v1;g=meta.k8s.io",
}

// oneByOne is a selector that leaves nothing out, but has to look at each
// object: what it selects is not written in runs.
var oneByOne = "fieldSelector=" + url.QueryEscape("metadata.name!=missing")

// TestListsInRunsAreListsOneByOne changes pods at random and lists them in
// every form, compressed or not: joined blocks must be, byte for byte, what a list
// is that goes from object to object. A short test does it once.
func TestListsInRunsAreListsOneByOne(t *testing.T) {
	c := newCluster(t)
	random := rand.New(rand.NewPCG(10, 11))
	for i := range 300 {
		c.put(listedPod(i * 3))
	}
	times := 5
	if testing.Short() {
		times = 1
	}
	for range times {
		last := c.put(listedPod(random.IntN(900)))
		for range random.IntN(20) {
			i := random.IntN(900)
			pod := listedPod(i)
			if _, found := c.caches[c.pods].Current().Get(c.pods.Key(pod.Namespace, pod.Name)); found && i%2 == 0 {
				last = c.remove(pod.Namespace, pod.Name)
			} else {
				last = c.put(pod)
			}
		}
		exact := fmt.Sprintf("?resourceVersion=%d&resourceVersionMatch=Exact&", last)
		for _, accept := range listForms {
			for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/team-03/pods", "/api/v1/namespaces/none/pods"} {
				want := c.get(path+exact+oneByOne, "Accept: "+accept)
				for _, encoding := range []string{"gzip", "identity", "gzip"} {
					got := c.get(path+exact, "Accept: "+accept, "Accept-Encoding: "+encoding)
					if got.code != 200 || !bytes.Equal(got.inflated(t), want.body) {
						t.Fatalf("%s as %s in %s: %d, %d bytes instead of %d", path, accept, encoding, got.code, len(got.inflated(t)), len(want.body))
					}
					if compressed := got.header.Get("Content-Encoding") == "gzip"; compressed != (encoding == "gzip" && len(want.body) > 128<<10) {
						t.Errorf("%s as %s in %s, %d bytes: compressed is %v", path, accept, encoding, len(want.body), compressed)
					}
				}
				if head := c.do("HEAD", path+exact, "", "Accept: "+accept, "Accept-Encoding: gzip"); head.code != 200 || len(head.body) != 0 {
					t.Errorf("HEAD of %s as %s: %d with %d bytes", path, accept, head.code, len(head.body))
				}
			}
		}
		checkPages(t, c, exact, 1+random.IntN(200))
	}
	if c.caches[c.pods].Stats().BlockBytes == 0 {
		t.Error("no block was kept")
	}
}

// TestLongListsOneByOne writes more than is kept between two visits.
func TestLongListsOneByOne(t *testing.T) {
	c := newCluster(t)
	var last storage.Revision
	for i := range 12 {
		pod := listedPod(i)
		pod.Annotations["long"] = strings.Repeat("x", 150_000)
		last = c.put(pod)
	}
	path := fmt.Sprintf("/api/v1/pods?resourceVersion=%d&resourceVersionMatch=Exact&", last)
	want, got := c.get(path, "Accept: "+protobufType), c.get(path+oneByOne, "Accept: "+protobufType)
	if got.code != 200 || !bytes.Equal(got.body, want.body) || len(got.body) < 12*150_000 {
		t.Errorf("%d: %d bytes instead of %d", got.code, len(got.body), len(want.body))
	}
}

// TestReadsKeepNothingWithObjects: what they kept would stay for as long as the
// objects, whose number has no bound.
func TestReadsKeepNothingWithObjects(t *testing.T) {
	c := newCluster(t)
	pod := listedPod(1)
	last := c.put(pod)
	for _, accept := range listForms {
		for _, query := range []string{oneByOne, "fieldSelector=metadata.name%3D" + pod.Name} {
			path := fmt.Sprintf("/api/v1/pods?resourceVersion=%d&%s", last, query)
			if got := c.get(path, "Accept: "+accept); got.code != 200 {
				t.Errorf("%s as %s: %d", path, accept, got.code)
			}
		}
	}
	path := "/api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name
	for _, accept := range []string{
		"application/json", protobufType, "application/cbor", "application/json;as=Table;v=v1;g=meta.k8s.io",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
		"application/cbor;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
	} {
		if got := c.get(path, "Accept: "+accept); got.code != 200 {
			t.Errorf("%s as %s: %d", path, accept, got.code)
		}
	}
	if kept := c.caches[c.pods].Stats().FormBytes; kept != 0 {
		t.Errorf("%d bytes are kept", kept)
	}
}

// checkPages follows the pages of a list in two forms to its end.
func checkPages(t *testing.T, c *cluster, exact string, limit int) {
	t.Helper()
	want := names(c.get("/api/v1/pods" + exact + oneByOne).podList(t))
	var all corev1.PodList
	query := exact
	for {
		path := fmt.Sprintf("/api/v1/pods%s&limit=%d", query, limit)
		page := reply{body: c.get(path, "Accept-Encoding: gzip").inflated(t)}.podList(t)
		var same corev1.PodList
		body := c.get(path, "Accept-Encoding: gzip", "Accept: "+protobufType).inflated(t)
		must(t, unwrapList(body, &same))
		if names(same) != names(page) || same.ListMeta.Continue != page.ListMeta.Continue {
			t.Fatalf("%s: JSON has %q, protobuf %q", path, names(page), names(same))
		}
		all.Items = append(all.Items, page.Items...)
		if page.Continue == "" {
			break
		}
		if len(page.Items) != limit || page.RemainingItemCount == nil {
			t.Fatalf("%s: %d items, and remainingItemCount is set: %v", path, len(page.Items), page.RemainingItemCount != nil)
		}
		query = "?continue=" + url.QueryEscape(page.Continue)
	}
	if got := names(all); got != want {
		t.Fatalf("pages of %d: %q, want %q", limit, got, want)
	}
}

func unwrapList(body []byte, list *corev1.PodList) error {
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(body[len("k8s\x00"):]); err != nil {
		return err
	}
	return list.Unmarshal(envelope.Raw)
}

// TestListsWhileBlocksComeAndGo lists in all forms at once while a writer
// changes pods and the budget of blocks is too small.
func TestListsWhileBlocksComeAndGo(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.cache.BlockBytes = 20_000 })
	for i := range 200 {
		c.put(listedPod(i))
	}
	var wait sync.WaitGroup
	stop := make(chan struct{})
	for _, accept := range []string{"application/json", protobufType, metaListType, "application/cbor"} {
		for _, encoding := range []string{"gzip", "identity"} {
			wait.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					got := c.get("/api/v1/pods", "Accept: "+accept, "Accept-Encoding: "+encoding).inflated(t)
					var list struct {
						Metadata struct{ ResourceVersion string }
					}
					if accept != "application/json" {
						continue
					}
					must(t, json.Unmarshal(got, &list))
					want := c.get("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=" + list.Metadata.ResourceVersion + "&" + oneByOne).body
					if !bytes.Equal(got, want) {
						t.Errorf("a list at %s is not what was there", list.Metadata.ResourceVersion)
						return
					}
				}
			})
		}
	}
	for i := range 300 {
		c.put(listedPod(i * 7 % 400))
	}
	close(stop)
	wait.Wait()
}
