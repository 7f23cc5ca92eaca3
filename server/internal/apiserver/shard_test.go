package apiserver

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/shard"
)

// halves are two selectors that split a collection by UID.
var halves = [2]string{
	"shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')",
	"shardRange(object.metadata.uid,'0x8000000000000000','0x10000000000000000')",
}

// half says which of the halves an object is in.
func half(uid types.UID) int { return int(shard.Hash(string(uid)) >> 63) }

// shardedPod has a UID like those that servers assign. FNV-1a spreads very
// short ones badly.
func shardedPod(name string, labels map[string]string) *corev1.Pod {
	pod := testPod("a", name, labels, "")
	pod.UID = uidOf(name)
	return pod
}

func uidOf(name string) types.UID {
	return types.UID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String())
}

func TestShardedLists(t *testing.T) {
	c := newCluster(t)
	var want [2][]string
	for i := range 20 {
		name := fmt.Sprintf("pod-%02d", i)
		pod := shardedPod(name, map[string]string{"even": fmt.Sprint(i%2 == 0)})
		c.put(pod)
		want[half(pod.UID)] = append(want[half(pod.UID)], "a/"+name)
	}
	if len(want[0]) < 3 || len(want[1]) < 3 {
		t.Fatalf("the halves %v are no test", want)
	}
	for i, selector := range halves {
		query := "shardSelector=" + url.QueryEscape(selector)
		list := c.get("/api/v1/pods?" + query).podList(t)
		if got := names(list); got != strings.Join(want[i], " ") {
			t.Errorf("half %d is %q, want %q", i, got, want[i])
		}
		if list.ShardInfo == nil || list.ShardInfo.Selector != selector {
			t.Errorf("shardInfo is %v", list.ShardInfo)
		}
		first := c.get("/api/v1/pods?limit=2&" + query).podList(t)
		if names(first) != strings.Join(want[i][:2], " ") || first.RemainingItemCount != nil || first.Continue == "" || first.ShardInfo == nil {
			t.Errorf("first page %q, metadata %+v", names(first), first.ListMeta)
		}
		rest := c.get("/api/v1/pods?continue=" + first.Continue + "&" + query).podList(t)
		if names(rest) != strings.Join(want[i][2:], " ") || rest.ShardInfo == nil {
			t.Errorf("the other pages are %q, want %q", names(rest), want[i][2:])
		}
		even := c.get("/api/v1/namespaces/a/pods?labelSelector=even%3Dtrue&" + query).podList(t)
		for _, pod := range even.Items {
			if pod.Labels["even"] != "true" || !slices.Contains(want[i], "a/"+pod.Name) {
				t.Errorf("%s is not selected by both", pod.Name)
			}
		}
	}
	both := c.get("/api/v1/pods?shardSelector=" + url.QueryEscape(halves[0]+" || "+halves[1])).podList(t)
	if len(both.Items) != 20 {
		t.Errorf("both halves have %d objects", len(both.Items))
	}
	if whole := c.get("/api/v1/pods").podList(t); whole.ShardInfo != nil {
		t.Errorf("the whole says that it is a part: %v", whole.ShardInfo)
	}
}

func TestShardsByNamespace(t *testing.T) {
	c := newCluster(t)
	seed(c)
	h := shard.Hash("a")
	selector := fmt.Sprintf("shardRange(object.metadata.namespace,'0x%x','0x%x')", h, h+1)
	list := c.get("/api/v1/pods?shardSelector=" + url.QueryEscape(selector)).podList(t)
	if got := names(list); got != "a/one a/two" {
		t.Errorf("the shard of namespace a is %q", got)
	}
	var metadata metav1.PartialObjectMetadataList
	got := c.get("/api/v1/pods?shardSelector="+url.QueryEscape(selector),
		"Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	must(t, json.Unmarshal(got.body, &metadata))
	if len(metadata.Items) != 2 || metadata.ShardInfo == nil || metadata.ShardInfo.Selector != selector {
		t.Errorf("as metadata: %s", got.body)
	}
}

func TestShardedWatches(t *testing.T) {
	c := newCluster(t)
	streams := [2]*frames{}
	for i, selector := range halves {
		streams[i] = c.watch("/api/v1/pods?watch=1&resourceVersion=0&shardSelector=" + url.QueryEscape(selector))
	}
	for i := range 10 {
		name := fmt.Sprintf("pod-%02d", i)
		rev := c.put(shardedPod(name, nil))
		streams[half(uidOf(name))].want(fmt.Sprintf("ADDED %s@%d", name, rev))
	}
	// Another object of the same name may be in the other half: it leaves the
	// one and enters the other at the same version.
	other := shardedPod("pod-00", nil)
	from := half(other.UID)
	for i := 0; half(other.UID) == from; i++ {
		other.UID = uidOf(fmt.Sprint("other-", i))
	}
	rev := c.put(other)
	streams[from].want(fmt.Sprint("DELETED pod-00@", rev))
	streams[1-from].want(fmt.Sprint("ADDED pod-00@", rev))
	rev = c.remove("a", "pod-00")
	streams[1-from].want(fmt.Sprint("DELETED pod-00@", rev))
}

func TestBadShardSelectorsAreRefused(t *testing.T) {
	c := newCluster(t)
	for _, path := range []string{"/api/v1/pods?", "/api/v1/pods?watch=1&"} {
		for _, selector := range []string{"all", "shardRange(object.metadata.name,'0x0','0x1')"} {
			got := c.get(path + "shardSelector=" + url.QueryEscape(selector))
			if status := got.status(t); got.code != 400 || status.Reason != metav1.StatusReasonBadRequest {
				t.Errorf("%s with %s: %d %s", path, selector, got.code, status.Reason)
			}
		}
	}
}
