package read

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/difference"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// digestOf is what a client says that holds the objects of a page and has seen
// everything up to known.
func digestOf(page Page, known uint64) *difference.Digest {
	n := 0
	for range page.Items {
		n++
	}
	d := difference.NewDigest(difference.NewSeed(), n)
	d.Known = known
	hasher := difference.NewHasher(d.Seed, d.Bits)
	for o := range page.Items {
		d.Add(hasher.Keyed(o.Key, uint64(o.Revision)))
	}
	return d
}

func TestDifferenceIsWhatTheClientLacks(t *testing.T) {
	f := newFixture(t)
	for i := range 400 {
		f.put(testPod("a", fmt.Sprint("pod-", i), nil, "n"))
	}
	_, page := f.list(f.allPods(), metav1.ListOptions{})
	known, err := difference.Version(page.Meta.ResourceVersion)
	must(t, err)
	d, err := f.reader.Difference(t.Context(), f.allPods(), &metav1.ListOptions{}, digestOf(page, known))
	if err != nil || d.Header.Selected != 400 || d.Header.Sent != 0 || d.Header.Unchanged != 0 || d.Header.Version != known {
		t.Fatalf("nothing changed: %+v, %v", d, err)
	}
	changed := f.put(testPod("a", "pod-7", nil, "m"))
	deleted := f.remove("a", "pod-8")
	d, err = f.reader.Difference(t.Context(), f.allPods(), &metav1.ListOptions{}, digestOf(page, known))
	must(t, err)
	if d.Header.Selected != 399 || d.Header.Sent != 1 || d.Header.Unchanged > 100 || d.Header.Version != uint64(deleted) {
		t.Errorf("one changed, one deleted: %+v", d.Header)
	}
	for range 2 {
		for o := range d.Sent() {
			if o.Key != "a/pod-7" || o.Revision != changed {
				t.Errorf("%s at %d would be sent", o.Key, o.Revision)
			}
		}
		hashes := uint64(0)
		for range d.Unchanged() {
			hashes++
		}
		if hashes != d.Header.Unchanged {
			t.Errorf("%d hashes of %d", hashes, d.Header.Unchanged)
		}
	}
}

func TestDifferenceRefusals(t *testing.T) { synctest.Test(t, testDifferenceRefusals) }

func testDifferenceRefusals(t *testing.T) {
	f := newFixture(t)
	f.seed()
	for _, tt := range []struct {
		opts metav1.ListOptions
		code int32
	}{
		{metav1.ListOptions{Limit: 1}, 400},
		{metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchExact}, 400},
		{metav1.ListOptions{Continue: "x"}, 400},
		{metav1.ListOptions{ResourceVersion: "100000"}, 504},
		{metav1.ListOptions{LabelSelector: "!!"}, 400},
		{metav1.ListOptions{SendInitialEvents: new(true)}, 422},
	} {
		if _, err := f.reader.Difference(t.Context(), f.allPods(), &tt.opts, digestOf(Page{Items: slices.Values[[]*watchcache.Object](nil)}, 0)); err == nil || status.Of(err).Code != tt.code {
			t.Errorf("%+v: %v, want %d", tt.opts, err, tt.code)
		}
	}
}

func TestDifferenceAdvisesToList(t *testing.T) {
	f := newFixture(t)
	for i := range 600 {
		f.put(testPod("a", fmt.Sprint("pod-", i), nil, "n"))
	}
	for known, instead := range map[uint64]bool{0: true, 1 << 40: false} {
		_, err := f.reader.Difference(t.Context(), f.allPods(), &metav1.ListOptions{}, digestOf(Page{Items: slices.Values[[]*watchcache.Object](nil)}, known))
		if got := apierrors.ReasonForError(err) == difference.ReasonListInstead; got != instead || !instead && err != nil {
			t.Errorf("known %d: %v", known, err)
		}
	}
}
