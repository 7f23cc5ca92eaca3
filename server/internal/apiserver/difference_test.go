package apiserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/difference"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/auth"
)

// holding is what a client has: versions by key.
type holding map[string]uint64

var errUnknownHash = errors.New("a hash of nothing that the client has")

// digest says what is held.
func (h holding) digest(known uint64) *difference.Digest {
	d := difference.NewDigest(difference.NewSeed(), len(h))
	d.Known = known
	hasher := difference.NewHasher(d.Seed, d.Bits)
	for key, version := range h {
		d.Add(hasher.Keyed(key, version))
	}
	return d
}

// apply is a client as docs/users/difference.md describes it, of objects in JSON.
func (h holding) apply(d *difference.Digest, body []byte) (holding, *difference.Header, error) {
	r := bufio.NewReader(bytes.NewReader(body))
	header, err := difference.ReadHeader(r, d.Bits)
	if err != nil {
		return nil, nil, err
	}
	hasher := difference.NewHasher(d.Seed, d.Bits)
	out, doubtful := holding{}, map[uint64]string{}
	checksum := uint64(0)
	keep := func(key string, version uint64) {
		_, hash := hasher.Keyed(key, version)
		checksum ^= hash
		out[key] = version
	}
	for key, version := range h {
		if bucket, hash := hasher.Keyed(key, version); header.Differing.Has(bucket) {
			doubtful[hash] = key
		} else {
			keep(key, version)
		}
	}
	for range header.Unchanged {
		hash, err := difference.ReadHash(r)
		if err != nil {
			return nil, nil, err
		}
		key, ok := doubtful[hash]
		if !ok {
			return nil, nil, errUnknownHash
		}
		keep(key, h[key])
	}
	for range header.Sent {
		size, err := difference.ReadSize(r)
		if err != nil {
			return nil, nil, err
		}
		item := make([]byte, size)
		if _, err := io.ReadFull(r, item); err != nil {
			return nil, nil, io.ErrUnexpectedEOF
		}
		var pod corev1.Pod
		if err := json.Unmarshal(item, &pod); err != nil || pod.Kind != "Pod" {
			return nil, nil, fmt.Errorf("an object that is no pod (%w): %.200s", err, item)
		}
		version, err := difference.Version(pod.ResourceVersion)
		if err != nil {
			return nil, nil, err
		}
		keep(pod.Namespace+"/"+pod.Name, version)
	}
	if uint64(len(out)) != header.Selected || checksum != header.Checksum {
		return nil, nil, fmt.Errorf("%d objects with checksum %x, the server has %d with %x", len(out), checksum, header.Selected, header.Checksum)
	}
	return out, header, difference.ReadEnd(r)
}

// differ asks for a difference in JSON.
func (c *cluster) differ(path string, d *difference.Digest, headers ...string) reply {
	c.t.Helper()
	return c.do(http.MethodPost, difference.Path+path, string(d.Append(nil)), append([]string{"Content-Type: " + difference.MediaType}, headers...)...)
}

// difference is the body of a difference; any other answer fails the test.
func (c *cluster) difference(path string, d *difference.Digest) []byte {
	c.t.Helper()
	got := c.differ(path, d)
	if got.code != http.StatusOK {
		c.t.Fatalf("difference of %s: %d %.500s", path, got.code, got.body)
	}
	return got.body
}

func heldOf(t testing.TB, list corev1.PodList) (holding, uint64) {
	t.Helper()
	h := holding{}
	for _, pod := range list.Items {
		version, err := difference.Version(pod.ResourceVersion)
		must(t, err)
		h[pod.Namespace+"/"+pod.Name] = version
	}
	version, err := difference.Version(list.ResourceVersion)
	must(t, err)
	return h, version
}

// TestDifferenceLeadsToTheServersState: whatever a client holds, after it has
// applied the answer it holds what a list would have brought.
func TestDifferenceLeadsToTheServersState(t *testing.T) {
	c := newCluster(t)
	paths := []string{"/api/v1/pods", "/api/v1/namespaces/a/pods", "/api/v1/pods?labelSelector=app%3Dx",
		"/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", "/api/v1/namespaces/b/pods?labelSelector=app!%3Dx", "/api/v1/namespaces/none/pods"}
	random := rand.New(rand.NewPCG(1, 2))
	change := func(times int) {
		for range times {
			namespace, name := string(rune('a'+random.IntN(3))), fmt.Sprint("pod-", random.IntN(120))
			if random.IntN(4) == 0 && c.get("/api/v1/namespaces/"+namespace+"/pods/"+name).code == http.StatusOK {
				c.remove(namespace, name)
				continue
			}
			c.put(testPod(namespace, name, map[string]string{"app": string("xyz"[random.IntN(3)])}, fmt.Sprint("n", random.IntN(3))))
		}
	}
	change(150)
	unknown := 0
	for round := range 120 {
		path := paths[round%len(paths)]
		held, known := heldOf(t, c.get(path).podList(t))
		change(random.IntN(30))
		switch round / len(paths) % 4 {
		case 1: // nothing of it is certain
			known = 0
		case 2: // it is not what the client takes it for
			for key := range held {
				switch random.IntN(10) {
				case 0:
					delete(held, key)
				case 1:
					held[key] -= uint64(random.IntN(int(held[key])))
				case 2:
					held["foreign/"+key] = held[key]
				}
			}
		case 3: // it has seen more than the version says
			known -= uint64(random.IntN(int(known)))
		}
		d := held.digest(known)
		got, _, err := held.apply(d, c.difference(path, d))
		if errors.Is(err, errUnknownHash) {
			unknown++
			d.Known = 0
			got, _, err = held.apply(d, c.difference(path, d))
		}
		if err != nil {
			t.Fatalf("round %d, %s: %v", round, path, err)
		}
		if want, _ := heldOf(t, c.get(path).podList(t)); !maps.Equal(got, want) {
			t.Fatalf("round %d, %s: got %v, want %v", round, path, got, want)
		}
	}
	if unknown == 0 {
		t.Error("no client ever held something else than it said: that is not tested")
	}
}

func TestDifferenceSendsOnlyWhatChanged(t *testing.T) {
	c := newCluster(t)
	for i := range 400 {
		c.put(testPod("a", fmt.Sprint("pod-", i), nil, "n"))
	}
	held, known := heldOf(t, c.get("/api/v1/pods").podList(t))
	d := held.digest(known)
	if _, header, err := held.apply(d, c.differ("/api/v1/pods", d).body); err != nil || header.Sent != 0 || header.Unchanged != 0 || header.Version != known {
		t.Errorf("nothing changed: %+v, %v", header, err)
	}
	c.put(testPod("a", "pod-7", nil, "m"))
	c.remove("a", "pod-8")
	d = held.digest(known)
	_, header, err := held.apply(d, c.differ("/api/v1/pods", d).body)
	if err != nil || header.Sent != 1 || header.Unchanged > 100 || header.Version <= known {
		t.Errorf("one changed, one deleted: %+v, %v", header, err)
	}
	body := string(c.get("/metrics").body)
	for _, want := range []string{
		`levelwire_differences_total{result="difference"} 2`, `levelwire_difference_objects_total{representation="full"} 1`,
		`apiserver_request_total{code="200",group="",resource="pods",subresource="",verb="difference",version="v1"} 2`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

func TestDifferenceAdvisesToList(t *testing.T) {
	c := newCluster(t)
	for i := range 600 {
		c.put(testPod("a", fmt.Sprint("pod-", i), nil, "n"))
	}
	for known, want := range map[uint64]int{0: http.StatusConflict, 1 << 40: http.StatusOK} {
		d := holding{}.digest(known)
		got := c.differ("/api/v1/pods", d)
		if got.code != want {
			t.Errorf("known %d: %d %.200s", known, got.code, got.body)
		}
		if want == http.StatusConflict && got.status(t).Reason != difference.ReasonListInstead {
			t.Errorf("got %s", got.body)
		}
	}
	if body := string(c.get("/metrics").body); !strings.Contains(body, `levelwire_differences_total{result="list instead"} 1`) {
		t.Error("it is not counted")
	}
}

func TestDifferenceForms(t *testing.T) {
	c := newCluster(t)
	seed(c)
	for accept, items := range map[string]string{
		"":                                 "application/json",
		protobufType + ",application/json": protobufType,
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io":        "application/json",
		protobufType + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,*/*;q=0": protobufType,
	} {
		got := c.differ("/api/v1/pods", holding{}.digest(0), "Accept: "+accept)
		if want := difference.MediaType + `; items="` + items + `"`; got.code != http.StatusOK || got.header.Get("Content-Type") != want {
			t.Errorf("%q: %d %v", accept, got.code, got.header)
		}
		if metadata := strings.Contains(accept, "Partial"); metadata == bytes.Contains(got.body, []byte("image")) {
			t.Errorf("%q: %q", accept, got.body)
		}
	}
}

func TestDifferenceRefusals(t *testing.T) {
	c := newCluster(t, hurried)
	seed(c)
	good, media := string(holding{}.digest(0).Append(nil)), "Content-Type: "+difference.MediaType
	for _, tt := range []struct {
		name, method, path, body, header string
		code                             int
	}{
		{"no collection", "POST", "", good, media, 404},
		{"no path of objects", "POST", "/version", good, media, 404},
		{"an object", "POST", "/api/v1/namespaces/a/pods/one", good, media, 404},
		{"no such kind", "POST", "/api/v1/spoons", good, media, 409},
		{"a watch", "POST", "/api/v1/watch/pods", good, media, 404},
		{"what cannot be listed", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", good, media, 405},
		{"a GET", "GET", "/api/v1/pods", "", media, 405},
		{"JSON", "POST", "/api/v1/pods", "{}", "Content-Type: application/json", 415},
		{"no digest", "POST", "/api/v1/pods", "digest", media, 400},
		{"a cut digest", "POST", "/api/v1/pods", good[:len(good)-1], media, 400},
		{"too much", "POST", "/api/v1/pods", strings.Repeat("x", 4<<20), media, 413},
		{"a page", "POST", "/api/v1/pods?limit=1", good, media, 400},
		{"the past", "POST", "/api/v1/pods?resourceVersion=1&resourceVersionMatch=Exact", good, media, 400},
		{"the future", "POST", "/api/v1/pods?resourceVersion=100000", good, media, 504},
		{"a selector that cannot be read", "POST", "/api/v1/pods?labelSelector=!!", good, media, 400},
		{"a table", "POST", "/api/v1/pods", good, "Accept: " + tableType, 415},
	} {
		if got := c.do(tt.method, difference.Path+tt.path, tt.body, tt.header); got.code != tt.code {
			t.Errorf("%s: %d %.300s", tt.name, got.code, got.body)
		}
	}
	future := c.differ("/api/v1/pods?resourceVersion=100000", holding{}.digest(0)).status(t)
	if future.Details == nil || len(future.Details.Causes) == 0 || future.Details.Causes[0].Type != metav1.CauseTypeResourceVersionTooLarge {
		t.Errorf("the future: %+v", future)
	}
	if got := c.differ("/api/v1/pods", holding{}.digest(0), "Accept: "+tableType); got.code != 406 {
		t.Errorf("a table: %d", got.code)
	}
	if got := c.differ("/api/v1/pods", holding{}.digest(0), "Authorization: "); got.code != 401 {
		t.Errorf("an unauthenticated client: %d", got.code)
	}
}

func TestDifferenceIsAuthorizedAsAList(t *testing.T) {
	seen := make(chan auth.Attributes, 1)
	c := newCluster(t, func(s *setup) {
		s.config.Authorizer = authorizerFunc(func(a auth.Attributes) (auth.Decision, string) {
			seen <- a
			return auth.Deny, "not today"
		})
	})
	if got := c.differ("/apis/apps/v1/namespaces/a/deployments", holding{}.digest(0)); got.code != http.StatusForbidden {
		t.Errorf("%d %s", got.code, got.body)
	}
	if a := <-seen; a.Verb != request.VerbList || a.Group != "apps" || a.Resource != "deployments" || a.Namespace != "a" || a.User.Name != "tester" {
		t.Errorf("asked for %+v", a)
	}
}
