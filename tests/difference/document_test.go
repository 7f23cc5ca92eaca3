package difference_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/difference"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

var documentedSeed = []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// documented returns the bytes of the document's n-th example: hexadecimal
// numbers, and behind a bar what they mean.
func documented(t *testing.T, n int) []byte {
	t.Helper()
	document, err := os.ReadFile("../../docs/users/difference.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(document), "```hex\n")
	if len(blocks) != 3 {
		t.Fatalf("the document has %d examples", len(blocks)-1)
	}
	block, _, _ := strings.Cut(blocks[n], "```")
	var digits strings.Builder
	for line := range strings.Lines(block) {
		number, _, _ := strings.Cut(line, "|")
		digits.WriteString(strings.ReplaceAll(number, " ", ""))
	}
	out, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDocumentedExample holds the bytes in the document against the package and
// against the stranger.
func TestDocumentedExample(t *testing.T) {
	held, has := versions{"default/web-0": 4711, "default/web-1": 4720}, versions{"default/web-0": 4711, "default/web-2": 4790}
	object := `{"metadata":{"name":"web-2","namespace":"default","resourceVersion":"4790"}}`
	question, answer := documented(t, 1), documented(t, 2)
	q := strangerAsks(documentedSeed, 1, 4720, held)
	if got := q.bytes(); !bytes.Equal(got, question) {
		t.Errorf("the stranger asks\n%x, the document\n%x", got, question)
	}
	if got := strangerAnswers(q, 4800, has, func(string) []byte { return []byte(object) }).bytes(); !bytes.Equal(got, answer) {
		t.Errorf("the stranger answers\n%x, the document\n%x", got, answer)
	}
	d := &difference.Digest{Seed: difference.Seed(documentedSeed), Known: 4720, Bits: 1, Buckets: make([]uint64, 2)}
	hasher := difference.NewHasher(d.Seed, d.Bits)
	for key, version := range held {
		d.Add(hasher.Keyed(key, version))
	}
	if got := d.Append(nil); !bytes.Equal(got, question) {
		t.Errorf("the package asks\n%x, the document\n%x", got, question)
	}
	r := bytes.NewReader(answer)
	header, err := difference.ReadHeader(r, 1)
	if err != nil || header.Version != 4800 || header.Unchanged != 1 || header.Sent != 1 {
		t.Fatalf("%+v, %v", header, err)
	}
	_, want := hasher.Keyed("default/web-0", 4711)
	if hash, err := difference.ReadHash(r); err != nil || hash != want {
		t.Errorf("hash %x, %v", hash, err)
	}
	size, err := difference.ReadSize(r)
	if err != nil || size != uint64(len(object)) {
		t.Fatalf("an object of %d bytes, %v", size, err)
	}
	got := make([]byte, size)
	if _, err := io.ReadFull(r, got); err != nil || string(got) != object {
		t.Errorf("object %s, %v", got, err)
	}
	if err := difference.ReadEnd(r); err != nil {
		t.Error(err)
	}
}

// identify reads what a difference says of an object.
func identify(data []byte, inJSON bool) (key string, version uint64, err error) {
	var cm corev1.ConfigMap
	if inJSON {
		err = json.Unmarshal(data, &cm)
	} else {
		err = cm.Unmarshal(data)
	}
	if err == nil {
		version, err = strconv.ParseUint(cm.ResourceVersion, 10, 63)
	}
	return cm.Namespace + "/" + cm.Name, version, err
}

// TestStrangerAsksTheServer: a client written from the document alone gets the state of
// the server.
func TestStrangerAsksTheServer(t *testing.T) {
	// No other client makes ConfigMaps, between an answer and the list that it is held against.
	server := levelwiretest.Start(t, func(c *server.Config) { c.DisableAdmissionPlugins = []string{"ServiceAccount"} })
	cl, err := rest.HTTPClientFor(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.CloseIdleConnections()
	configMaps := client.For[*corev1.ConfigMap](server.Client(client.Options{})).Namespace("default")
	random := rand.New(rand.NewPCG(7, 8))
	change := func() {
		for range 15 {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("x", random.IntN(60))}}
			if _, err := configMaps.Create(t.Context(), cm, metav1.CreateOptions{}); err == nil {
				continue
			}
			if err := configMaps.Delete(t.Context(), cm.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	list := func() (versions, uint64) {
		list, err := configMaps.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		known, err := strconv.ParseUint(list.ResourceVersion, 10, 63)
		if err != nil {
			t.Fatal(err)
		}
		has := versions{}
		for _, cm := range list.Items {
			if has[cm.Namespace+"/"+cm.Name], err = strconv.ParseUint(cm.ResourceVersion, 10, 63); err != nil {
				t.Fatal(err)
			}
		}
		return has, known
	}
	unknown := 0
	for round := range 40 {
		held, known := list()
		if change(); round%4 == 3 { // it has less than it believes
			for key := range held {
				delete(held, key)
				break
			}
		}
		inJSON, accept := true, "application/json"
		if round%2 == 1 {
			inJSON, accept = false, "application/vnd.kubernetes.protobuf"
		}
		seed := binaryNoise(random)
		q := strangerAsks(seed, round%6, known, held)
		ask := func() (versions, error) {
			answer := post(t, cl, server.Config().Host+strangerPath+"/api/v1/namespaces/default/configmaps", accept, q.bytes())
			a, err := strangerReadsAnswer(q.b, answer)
			if err != nil {
				t.Fatal(err)
			}
			return strangerApplies(q, held, a, func(object []byte) (string, uint64, error) { return identify(object, inJSON) })
		}
		got, err := ask()
		if errors.Is(err, errStrangeHash) {
			unknown++
			q.known = 0
			got, err = ask()
		}
		if want, _ := list(); err != nil || !maps.Equal(got, want) {
			t.Fatalf("round %d: got %v, %v; want %v", round, got, err, want)
		}
	}
	if unknown == 0 {
		t.Error("no client ever had less than it believed")
	}
}

func binaryNoise(random *rand.Rand) []byte {
	seed := make([]byte, 16)
	for i := range seed {
		seed[i] = byte(random.IntN(256))
	}
	return seed
}

func post(t *testing.T, c *http.Client, url, accept string, body []byte) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", strangerMedia)
	req.Header.Set("Accept", accept)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	media, params, bad := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err = errors.Join(err, bad); err != nil || resp.StatusCode != http.StatusOK || media != strangerMedia || params["items"] != accept {
		t.Fatalf("%s %v: %.300s, %v", resp.Status, resp.Header, answer, err)
	}
	return answer
}

// TestClientAsksAStranger: our client understands a server that was built from
// the document, also one that ends its lines.
func TestClientAsksAStranger(t *testing.T) {
	has := map[string]*corev1.ConfigMap{}
	set := func(n, version int) {
		name := fmt.Sprint("x", n)
		has["default/"+name] = &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: strconv.Itoa(version)}}
	}
	var held []*corev1.ConfigMap
	for n := range 100 {
		set(n, 100+n)
		held = append(held, has[fmt.Sprint("default/x", n)])
	}
	set(5, 300)
	set(200, 301)
	delete(has, "default/x6")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != strangerPath+"/api/v1/configmaps" || r.Header.Get("Content-Type") != strangerMedia {
			http.Error(w, fmt.Sprint(r.Method, r.URL, r.Header, err), http.StatusBadRequest)
			return
		}
		q, err := strangerReadsQuestion(body)
		if err != nil || q.held != uint64(len(held)) || r.URL.Query().Has("resourceVersion") {
			http.Error(w, fmt.Sprint(q.held, r.URL, err), http.StatusBadRequest)
			return
		}
		all := versions{}
		for key, cm := range has {
			all[key], _ = strconv.ParseUint(cm.ResourceVersion, 10, 63) // it is one
		}
		w.Header().Set("Content-Type", strangerMedia+`; items="application/json"`)
		_, _ = w.Write(strangerAnswers(q, 400, all, func(key string) []byte {
			object, _ := json.MarshalIndent(has[key], "", "  ") // it has a JSON form
			return append(object, '\n')
		}).bytes())
	}))
	defer server.Close()
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	d, err := client.For[*corev1.ConfigMap](c).Difference(t.Context(), held, metav1.ListOptions{ResourceVersion: "250"})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Kept) != 98 || len(d.Received) != 2 || len(d.Dropped) != 2 || d.ResourceVersion != "400" {
		t.Fatalf("kept %d, received %d, dropped %d, version %s", len(d.Kept), len(d.Received), len(d.Dropped), d.ResourceVersion)
	}
	for _, cm := range append(d.Kept, d.Received...) {
		if want := has["default/"+cm.Name]; want == nil || want.ResourceVersion != cm.ResourceVersion {
			t.Errorf("%s at %s", cm.Name, cm.ResourceVersion)
		}
	}
}
