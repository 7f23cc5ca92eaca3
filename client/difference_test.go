package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/client/internal/wiretest"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/internal/difference"
)

// differenceServer has the given pods at version 5000, and answers as
// docs/users/difference.md says.
type differenceServer struct {
	pods  []*corev1.Pod
	media ContentType
	asked atomic.Int64
	// mend changes the answer before it is sent.
	mend func([]byte) []byte
}

func (s *differenceServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d, err := difference.ParseDigest(body)
	if r.URL.Query().Has("resourceVersion") || r.URL.Query().Has("resourceVersionMatch") {
		http.Error(w, "not the most recent state: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	if err != nil || r.URL.Path != difference.Path+"/api/v1/pods" || r.Header.Get("Content-Type") != difference.MediaType {
		http.Error(w, fmt.Sprint(err, r.URL, r.Header), http.StatusBadRequest)
		return
	}
	answer, err := s.answer(d)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if s.mend != nil {
		answer = s.mend(answer)
	}
	w.Header().Set("Content-Type", mime.FormatMediaType(difference.MediaType, map[string]string{"items": string(s.media)}))
	_, _ = w.Write(answer)
}

func (s *differenceServer) answer(d *difference.Digest) ([]byte, error) {
	h := &difference.Header{Version: 5000, Selected: uint64(len(s.pods)), Differing: difference.NewSet(d.Bits)}
	hasher := difference.NewHasher(d.Seed, d.Bits)
	each := func(visit func(pod *corev1.Pod, version, hash uint64, bucket uint32) error) error {
		for _, pod := range s.pods {
			version, err := difference.Version(pod.ResourceVersion)
			if err != nil {
				return err
			}
			bucket, hash := hasher.Named(pod.Namespace, pod.Name, version)
			if err := visit(pod, version, hash, bucket); err != nil {
				return err
			}
		}
		return nil
	}
	err := each(func(_ *corev1.Pod, _, hash uint64, bucket uint32) error {
		h.Checksum ^= hash
		d.Buckets[bucket] ^= hash
		return nil
	})
	for i, bucket := range d.Buckets {
		if bucket != 0 {
			h.Differing.Add(uint32(i))
		}
	}
	var hashes, objects []byte
	if err == nil {
		err = each(func(pod *corev1.Pod, version, hash uint64, bucket uint32) error {
			switch {
			case !h.Differing.Has(bucket):
				return nil
			case version <= d.Known:
				h.Unchanged++
				hashes = difference.AppendHash(hashes, hash)
				return nil
			}
			h.Sent++
			item, err := pod.Marshal()
			if s.media == JSON {
				item, _, err = codec.Encode(scheme.Default, pod, false)
			}
			objects = append(difference.AppendSize(objects, len(item)), item...)
			return err
		})
	}
	return difference.AppendEnd(append(append(h.Append(nil, d.Bits), hashes...), objects...)), err
}

func samplePods(n int) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range n {
		pods = append(pods, wiretest.Pod(i))
	}
	return pods
}

// versionsOf are keys and versions, for comparison.
func versionsOf[T Object](objects ...[]T) map[string]string {
	all := map[string]string{}
	for _, part := range objects {
		for _, obj := range part {
			all[obj.GetNamespace()+"/"+obj.GetName()] += obj.GetResourceVersion()
		}
	}
	return all
}

func same(a, b map[string]string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func TestDifferenceKeepsWhatIsHeld(t *testing.T) {
	for _, media := range []ContentType{JSON, Protobuf} {
		held := samplePods(300)
		server := &differenceServer{pods: samplePods(300), media: media}
		server.pods = append(server.pods[:100:100], server.pods[101:]...) // deleted
		server.pods[200].ResourceVersion, server.pods[200].Status.PodIP = "4000", "new"
		server.pods = append(server.pods, wiretest.Pod(999))
		client, _ := serve(t, Options{}, server)
		d, err := For[*corev1.Pod](client).Interning().Difference(t.Context(), held, metav1.ListOptions{ResourceVersion: "1500"})
		if err != nil {
			t.Fatal(err)
		}
		if d.ResourceVersion != "5000" || len(d.Received) != 2 || d.Bytes == 0 || server.asked.Load() != 1 {
			t.Errorf("%s: version %s, %d received, %d bytes, asked %d times", media, d.ResourceVersion, len(d.Received), d.Bytes, server.asked.Load())
		}
		if got, want := versionsOf(d.Kept, d.Received), versionsOf(server.pods); !same(got, want) {
			t.Errorf("%s: got %v, want %v", media, got, want)
		}
		if n := len(d.Kept) + len(d.Dropped); n != len(held) || len(versionsOf(d.Kept, d.Dropped)) != n {
			t.Errorf("%s: %d kept, %d dropped of %d", media, len(d.Kept), len(d.Dropped), len(held))
		}
		known := map[*corev1.Pod]bool{}
		for _, pod := range held {
			known[pod] = true
		}
		for _, pod := range d.Kept {
			if !known[pod] {
				t.Fatalf("%s: %s is another object", media, pod.Name)
			}
		}
		for _, pod := range d.Received {
			if pod.Kind != "" || pod.Spec.Containers[1].Image == "" || pod.ResourceVersion == "4000" && pod.Status.PodIP != "new" {
				t.Errorf("%s: received %+v", media, pod)
			}
		}
	}
}

func TestDifferenceOfOtherForms(t *testing.T) {
	server := &differenceServer{pods: samplePods(20), media: JSON}
	client, _ := serve(t, Options{}, server)
	dynamic, err := Dynamic(client, podsResource).Difference(t.Context(), nil, metav1.ListOptions{})
	if err != nil || len(dynamic.Received) != 20 || dynamic.Received[3].GetKind() != "Pod" {
		t.Errorf("dynamic: %+v, %v", dynamic, err)
	}
	again, err := Dynamic(client, podsResource).Difference(t.Context(), dynamic.Received, metav1.ListOptions{ResourceVersion: "5000"})
	if err != nil || len(again.Kept) != 20 || len(again.Received) != 0 {
		t.Errorf("dynamic: %+v, %v", again, err)
	}
	meta, err := Metadata(client, podsResource).Difference(t.Context(), nil, metav1.ListOptions{})
	if err != nil || len(meta.Received) != 20 || meta.Received[3].Labels["app"] != "web" {
		t.Errorf("metadata: %+v, %v", meta, err)
	}
}

// TestDifferenceFromACopyThatIsWrong: the server names an object that is not
// held, so it is asked once more for everything in the buckets that differ.
func TestDifferenceFromACopyThatIsWrong(t *testing.T) {
	held := samplePods(100)[:99] // the last is missing, and its version is not after 1500
	held[5].ResourceVersion = "1"
	server := &differenceServer{pods: samplePods(100), media: JSON}
	client, _ := serve(t, Options{}, server)
	d, err := For[*corev1.Pod](client).Difference(t.Context(), held, metav1.ListOptions{ResourceVersion: "1500"})
	if err != nil || server.asked.Load() != 2 {
		t.Fatalf("asked %d times: %v", server.asked.Load(), err)
	}
	if got, want := versionsOf(d.Kept, d.Received), versionsOf(server.pods); !same(got, want) || len(d.Kept) == 0 {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDifferenceRefusals(t *testing.T) {
	for _, test := range []struct {
		name       string
		code       int
		reason     metav1.StatusReason
		want       error // nil: the server's own
		remembered bool
	}{
		{"not known", 404, "", ErrNoDifference, true},
		{"no such method", 405, "", ErrNoDifference, true},
		{"forbidden", 403, metav1.StatusReasonForbidden, ErrNoDifference, true},
		{"list instead", 409, difference.ReasonListInstead, ErrListInstead, false},
		{"too large", 413, "", ErrListInstead, false},
		{"bad", 400, metav1.StatusReasonBadRequest, ErrNoDifference, true},
		{"no such media type", 415, "", ErrNoDifference, true},
		{"not acceptable", 406, "", ErrNoDifference, true},
		{"unauthorized", 401, "", nil, false},
		{"overloaded", 429, metav1.StatusReasonTooManyRequests, nil, false},
		{"broken", 500, "", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked atomic.Int64
			client, _ := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.code)
				_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, test.code, test.reason)
			}))
			for range 2 {
				_, err := For[*corev1.Pod](client).Difference(t.Context(), nil, metav1.ListOptions{})
				var status *apierrors.StatusError
				if test.want != nil && !errors.Is(err, test.want) || test.want == nil && (!errors.As(err, &status) || errors.Is(err, ErrListInstead) || errors.Is(err, ErrNoDifference)) {
					t.Errorf("got %v", err)
				}
			}
			if want := map[bool]int64{true: 1, false: 2}[test.remembered]; asked.Load() != want {
				t.Errorf("asked %d times", asked.Load())
			}
		})
	}
}

// What is refused for one resource may be possible for others, and for the same later:
// one 404, of a server that starts, say, is no reason to list for the client's lifetime.
func TestDifferencesRefusedForOneResource(t *testing.T) {
	for _, code := range []int{403, 400, 404, 405, 501, 200} {
		synctest.Test(t, func(t *testing.T) { refusedForOneResource(t, code) })
	}
}

func refusedForOneResource(t *testing.T, code int) {
	t.Helper()
	var asked atomic.Int64
	client, _ := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, code)
	}))
	pods := For[*corev1.Pod](client)
	for _, r := range []Resource[*corev1.Pod]{pods, pods.Namespace("a"), pods} {
		if _, err := r.Difference(t.Context(), nil, metav1.ListOptions{}); !errors.Is(err, ErrNoDifference) {
			t.Errorf("%d: %v", code, err)
		}
	}
	if _, err := For[*corev1.ConfigMap](client).Difference(t.Context(), nil, metav1.ListOptions{}); !errors.Is(err, ErrNoDifference) {
		t.Errorf("%d: %v", code, err)
	}
	if asked.Load() != 3 { // pods, pods in a namespace, config maps
		t.Errorf("%d: asked %d times at first", code, asked.Load())
	}
	for range 3 {
		time.Sleep(refusedFor / 2)
		_, _ = pods.Difference(t.Context(), nil, metav1.ListOptions{})
	}
	if asked.Load() != 4 {
		t.Errorf("%d: asked %d times in a quarter of an hour", code, asked.Load())
	}
	many := Dynamic(client, podsResource)
	for n := range 2 * maxDifferenceRefusals {
		client.differenceRefusals.add(many.Namespace(fmt.Sprint(n)).differenceScope())
	}
	if held := len(client.differenceRefusals.at); held > maxDifferenceRefusals {
		t.Errorf("%d refusals are held", held)
	}
}

func TestDifferenceFromSomethingElse(t *testing.T) {
	for _, contentType := range []string{"text/html", "application/json"} {
		client, _ := serve(t, Options{}, answerWith(contentType, []byte("<html>")))
		if _, err := For[*corev1.Pod](client).Difference(t.Context(), nil, metav1.ListOptions{}); !errors.Is(err, ErrNoDifference) {
			t.Errorf("%s: got %v", contentType, err)
		}
	}
	asked := false
	client, _ := serve(t, Options{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	odd := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "resourceVersion": "v7"}}}
	if _, err := Dynamic(client, podsResource).Difference(t.Context(), []*unstructured.Unstructured{odd}, metav1.ListOptions{}); !errors.Is(err, ErrListInstead) || asked {
		t.Errorf("a version that is no number: %v, asked: %v", err, asked)
	}
}

// TestTruncatedDifferences: no part of an answer is taken for the whole.
func TestTruncatedDifferences(t *testing.T) {
	held := samplePods(40)
	for _, media := range []ContentType{JSON, Protobuf} {
		server := &differenceServer{pods: samplePods(40)[1:], media: media}
		c, err := newClaim(difference.Seed{}, held, "1020")
		if err != nil {
			t.Fatal(err)
		}
		whole, err := server.answer(c.digest)
		if err != nil {
			t.Fatal(err)
		}
		pods := For[*corev1.Pod](nil).codec
		enc := codec.EncodingOf(string(media))
		if _, err := readDifference(pods, enc, codec.NewSource(bytes.NewReader(whole), -1), c); err != nil {
			t.Fatalf("%s, whole: %v", media, err)
		}
		for n := range whole {
			if d, err := readDifference(pods, enc, codec.NewSource(bytes.NewReader(whole[:n]), -1), c); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s, %d of %d bytes: %+v, %v", media, n, len(whole), d, err)
			}
		}
		var decode *DecodeError
		for name, broken := range map[string][]byte{
			"checksum":          flip(whole, 24),
			"number of objects": flip(whole, 23),
			"more than the end": append(bytes.Clone(whole), 0),
		} {
			if _, err := readDifference(pods, enc, codec.NewSource(bytes.NewReader(broken), -1), c); !errors.As(err, &decode) {
				t.Errorf("%s, %s: %v", media, name, err)
			}
		}
		if _, err := readDifference(pods, enc, codec.NewSource(bytes.NewReader(whole), 100), c); !errors.Is(err, ErrFrameTooLarge) {
			t.Errorf("%s, limit of an object: %v", media, err)
		}
	}
}

// TestEmptyObjectsEndADifference: an object that is nothing takes a byte on the
// wire and far more in memory, so the first one is the last.
func TestEmptyObjectsEndADifference(t *testing.T) {
	c, err := newClaim(difference.Seed{}, samplePods(40), "1020")
	if err != nil {
		t.Fatal(err)
	}
	h := &difference.Header{Version: 5000, Sent: 1 << 40, Differing: difference.NewSet(c.digest.Bits)}
	in := bytes.NewReader(append(h.Append(nil, c.digest.Bits), make([]byte, 1<<20)...))
	var decode *DecodeError
	if _, err := readDifference(For[*corev1.Pod](nil).codec, codec.EncodingProtobuf, codec.NewSource(in, 1<<20), c); !errors.As(err, &decode) {
		t.Errorf("got %v", err)
	}
	if in.Len() < 1<<19 {
		t.Errorf("it was read on for %d bytes", 1<<20-in.Len())
	}
}

func flip(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 1
	return data
}

func FuzzReadDifference(f *testing.F) {
	held := samplePods(4)
	for _, media := range []ContentType{JSON, Protobuf} {
		server := &differenceServer{pods: samplePods(6)[1:], media: media}
		for _, known := range []string{"", "1003", "9999"} {
			c, err := newClaim(difference.Seed{}, held, known)
			if err != nil {
				f.Fatal(err)
			}
			answer, err := server.answer(c.digest)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(answer, media == JSON)
		}
	}
	pods := For[*corev1.Pod](nil).codec
	f.Fuzz(func(t *testing.T, data []byte, inJSON bool) {
		c, err := newClaim(difference.Seed{}, held, "1003")
		if err != nil {
			t.Fatal(err)
		}
		enc := codec.EncodingProtobuf
		if inJSON {
			enc = codec.EncodingJSON
		}
		d, err := readDifference(pods, enc, codec.NewSource(bytes.NewReader(data), 1<<20), c)
		if err == nil && len(d.Kept) > len(held) {
			t.Errorf("%d of %d objects kept", len(d.Kept), len(held))
		}
		if err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Error("an error that says nothing")
		}
	})
}
