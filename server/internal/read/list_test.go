package read

import (
	"fmt"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

func TestListGrid(t *testing.T) { synctest.Test(t, testListGrid) }

func testListGrid(t *testing.T) {
	f := newFixture(t)
	_, second, third := f.seed()
	const all, exact, notOlder = "a/one a/two b/three", metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan
	version := func(revision storage.Revision) string { return fmt.Sprint(revision) }
	future := version(third + 1000)
	token, err := encodeContinue(third, "", "a/one")
	must(t, err)
	for _, tt := range []struct {
		opts   metav1.ListOptions
		keys   string
		code   int32 // of the error; 0: none
		reason metav1.StatusReason
	}{
		{metav1.ListOptions{}, all, 0, ""},
		{metav1.ListOptions{Limit: 2}, "a/one a/two", 0, ""},
		{metav1.ListOptions{ResourceVersionMatch: exact}, "", 422, metav1.StatusReasonInvalid},
		{metav1.ListOptions{ResourceVersionMatch: notOlder}, "", 422, metav1.StatusReasonInvalid},
		{metav1.ListOptions{ResourceVersion: "0"}, all, 0, ""},
		{metav1.ListOptions{ResourceVersion: "0", Limit: 1}, all, 0, ""},
		{metav1.ListOptions{ResourceVersion: "0", ResourceVersionMatch: notOlder, Limit: 1}, all, 0, ""},
		{metav1.ListOptions{ResourceVersion: "0", ResourceVersionMatch: exact}, "", 422, metav1.StatusReasonInvalid},
		{metav1.ListOptions{ResourceVersion: version(second)}, all, 0, ""},
		{metav1.ListOptions{ResourceVersion: version(second), Limit: 10}, "a/one a/two", 0, ""},
		{metav1.ListOptions{ResourceVersion: version(second), Limit: 10, FieldSelector: "metadata.name=three"}, "", 0, ""},
		{metav1.ListOptions{ResourceVersion: version(second), Limit: 10, FieldSelector: "metadata.name=three,metadata.namespace=b"}, "b/three", 0, ""},
		{metav1.ListOptions{ResourceVersion: version(second), ResourceVersionMatch: exact, FieldSelector: "metadata.name=three,metadata.namespace=b"}, "", 0, ""},
		{metav1.ListOptions{ResourceVersion: version(second), ResourceVersionMatch: exact}, "a/one a/two", 0, ""},
		{metav1.ListOptions{ResourceVersion: version(second), ResourceVersionMatch: exact, Limit: 1}, "a/one", 0, ""},
		{metav1.ListOptions{ResourceVersion: version(second), ResourceVersionMatch: notOlder, Limit: 10}, all, 0, ""},
		{metav1.ListOptions{ResourceVersion: version(second), ResourceVersionMatch: notOlder, Limit: 2}, "a/one a/two", 0, ""},
		{metav1.ListOptions{ResourceVersion: version(second), ResourceVersionMatch: "Sometimes"}, "", 422, metav1.StatusReasonInvalid},
		{metav1.ListOptions{ResourceVersion: future}, "", 504, metav1.StatusReasonTimeout},
		{metav1.ListOptions{ResourceVersion: future, ResourceVersionMatch: notOlder}, "", 504, metav1.StatusReasonTimeout},
		{metav1.ListOptions{ResourceVersion: future, ResourceVersionMatch: exact}, "", 504, metav1.StatusReasonTimeout},
		{metav1.ListOptions{ResourceVersion: future, Limit: 5}, "", 504, metav1.StatusReasonTimeout},
		{metav1.ListOptions{ResourceVersion: "-1"}, "", 400, metav1.StatusReasonBadRequest},
		{metav1.ListOptions{ResourceVersion: "007"}, "", 400, metav1.StatusReasonBadRequest},
		{metav1.ListOptions{Limit: -1}, all, 0, ""},
		{metav1.ListOptions{Limit: -1, ResourceVersion: version(second)}, all, 0, ""},
		{metav1.ListOptions{Continue: token}, "a/two b/three", 0, ""},
		{metav1.ListOptions{Continue: token, Limit: 1}, "a/two", 0, ""},
		{metav1.ListOptions{Continue: token, ResourceVersion: "0", Limit: 1}, "a/two b/three", 0, ""},
		{metav1.ListOptions{Continue: token, ResourceVersion: version(third)}, "", 400, metav1.StatusReasonBadRequest},
		{metav1.ListOptions{Continue: token, ResourceVersionMatch: exact, ResourceVersion: version(third)}, "", 422, metav1.StatusReasonInvalid},
		{metav1.ListOptions{Continue: token, SendInitialEvents: new(true)}, "", 422, metav1.StatusReasonInvalid},
		{metav1.ListOptions{Continue: token, LabelSelector: "app=x"}, "b/three", 0, ""},
		{metav1.ListOptions{FieldSelector: "spec.host=n1"}, "a/one b/three", 0, ""},
		{metav1.ListOptions{FieldSelector: "status.podIPs="}, all, 0, ""},
		{metav1.ListOptions{FieldSelector: "status.podIPs=10.0.0.1"}, "", 0, ""},
		{metav1.ListOptions{FieldSelector: "status.podIPs!=10.0.0.1"}, all, 0, ""},
		{metav1.ListOptions{Continue: token, ResourceVersion: "00"}, "", 400, metav1.StatusReasonBadRequest},
		{metav1.ListOptions{Continue: "garbage"}, "", 400, metav1.StatusReasonBadRequest},
		{metav1.ListOptions{LabelSelector: "app in (y,z)"}, "a/two", 0, ""},
		{metav1.ListOptions{FieldSelector: "metadata.namespace=a,spec.nodeName!=n2"}, "a/one", 0, ""},
		{metav1.ListOptions{FieldSelector: "metadata.namespace=a,metadata.namespace=b"}, "", 0, ""},
		{metav1.ListOptions{FieldSelector: "spec.nothing=n1"}, "", 400, metav1.StatusReasonBadRequest},
	} {
		page, err := f.reader.List(t.Context(), f.allPods(), &tt.opts)
		if tt.code != 0 {
			if got := status.Of(err); err == nil || got.Code != tt.code || got.Reason != tt.reason {
				t.Errorf("%+v: %d %s, want %d %s", tt.opts, got.Code, got.Reason, tt.code, tt.reason)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", tt.opts, err)
		} else if got := keysOf(page); got != tt.keys {
			t.Errorf("%+v: %q, want %q", tt.opts, got, tt.keys)
		}
	}
}

func TestPagesAreOneSnapshot(t *testing.T) {
	f := newFixture(t)
	_, _, third := f.seed()
	_, first := f.list(f.allPods(), metav1.ListOptions{Limit: 1})
	if first.Meta.RemainingItemCount == nil || *first.Meta.RemainingItemCount != 2 {
		t.Errorf("remainingItemCount %v, want 2", first.Meta.RemainingItemCount)
	}
	f.remove("a", "two")
	f.put(testPod("a", "zzz", nil, ""))
	keys, second := f.list(f.allPods(), metav1.ListOptions{Limit: 5, Continue: first.Meta.Continue})
	if keys != "a/two b/three" {
		t.Errorf("second page has %q: it is not of the first page's snapshot", keys)
	}
	want := fmt.Sprint(third)
	if first.Meta.ResourceVersion != want || second.Meta.ResourceVersion != want || second.Meta.Continue != "" {
		t.Errorf("versions %s and %s, want %s; continue %q", first.Meta.ResourceVersion, second.Meta.ResourceVersion, want, second.Meta.Continue)
	}
	for _, opts := range []metav1.ListOptions{
		{Limit: 1, LabelSelector: "app"}, {Limit: 1, FieldSelector: "metadata.namespace=a"}, {Limit: 1, FieldSelector: "metadata.name!=x"},
	} {
		if _, filtered := f.list(f.allPods(), opts); filtered.Meta.RemainingItemCount != nil || filtered.Meta.Continue == "" {
			t.Errorf("%+v: remainingItemCount %v, continue %q", opts, filtered.Meta.RemainingItemCount, filtered.Meta.Continue)
		}
	}
	_, within := f.list(Scope{Resource: f.pods, Namespace: "a"}, metav1.ListOptions{Limit: 1})
	if within.Meta.RemainingItemCount == nil || *within.Meta.RemainingItemCount != 1 {
		t.Errorf("within a namespace: remainingItemCount %v, want 1", within.Meta.RemainingItemCount)
	}
}

// TestPagesMayBeIteratedAgain: an encoder may need a page's length first.
func TestPagesMayBeIteratedAgain(t *testing.T) {
	f := newFixture(t)
	_, _, third := f.seed()
	for name, opts := range map[string]metav1.ListOptions{
		"whole": {}, "page": {Limit: 2}, "selected": {LabelSelector: "app"}, "page of a selection": {LabelSelector: "app", Limit: 2}, "exact": at(third),
	} {
		keys, page := f.list(f.allPods(), opts)
		if again := keysOf(page); keys == "" || again != keys {
			t.Errorf("%s: %q, and then %q", name, keys, again)
		}
		if page.Runs == nil {
			continue
		}
		n := 0
		for run := range page.Runs {
			n += run.Len()
		}
		items := 0
		for range page.Items {
			items++
		}
		if n != items {
			t.Errorf("%s: %d objects in runs, %d one by one", name, n, items)
		}
	}
}

func TestReadYourWrites(t *testing.T) {
	f := newFixture(t)
	for i := range 50 {
		name := fmt.Sprintf("pod-%02d", i)
		f.put(testPod("a", name, nil, ""))
		if _, err := f.reader.Get(t.Context(), Scope{Resource: f.pods, Namespace: "a", Name: name}, ""); err != nil {
			t.Fatalf("%s was written and cannot be read: %v", name, err)
		}
		_, page := f.list(f.allPods(), metav1.ListOptions{})
		n := 0
		for range page.Items {
			n++
		}
		if n != i+1 {
			t.Fatalf("%d pods after %d writes", n, i+1)
		}
	}
}

func TestUnfilledCachesAskToComeBack(t *testing.T) { synctest.Test(t, testUnfilledCaches) }

func testUnfilledCaches(t *testing.T) {
	f := newFixture(t, func(s *setup) { s.unfed = true })
	_, getErr := f.reader.Get(t.Context(), Scope{Resource: f.pods, Namespace: "a", Name: "one"}, "0")
	_, listErr := f.reader.List(t.Context(), f.allPods(), &metav1.ListOptions{ResourceVersion: "0"})
	_, watchErr := f.reader.Watch(f.allPods(), &metav1.ListOptions{})
	for verb, err := range map[string]error{"get": getErr, "list": listErr, "watch": watchErr} {
		if got := status.Of(err); got.Code != 429 || got.Details == nil || got.Details.RetryAfterSeconds != 1 {
			t.Errorf("%s: %+v", verb, got)
		}
	}
}
