package read

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Two ways for a cache not to have a revision that the store still has: so much had
// happened since when it was filled, as after a restart, or has happened then.
var evicted = map[string]bool{"restarted": true, "busy": false}

// churn changes and deletes what there was, many times.
func (f *fixture) churn() {
	f.remove("a", "two")
	for i := range 20 {
		f.put(testPod("a", "zzz", map[string]string{"app": "x"}, fmt.Sprint("n", i)))
	}
}

func TestEvictedRevisionsAreReadFromTheStore(t *testing.T) {
	for how, restarted := range evicted {
		t.Run(how, func(t *testing.T) {
			var first, second, third storage.Revision
			write := func(f *fixture) {
				first, second, third = f.seed()
				f.churn()
			}
			f := newFixture(t, func(s *setup) {
				s.cache.HistoryEvents = 4
				if restarted {
					s.history = write
				}
			})
			if !restarted {
				write(f)
				f.list(f.allPods(), metav1.ListOptions{}) // returns when the cache has come this far
			}
			token, err := encodeContinue(third, "", "a/one")
			must(t, err)
			inNamespace, err := encodeContinue(third, "a/", "a/one")
			must(t, err)
			with := func(opts metav1.ListOptions, change func(*metav1.ListOptions)) metav1.ListOptions {
				change(&opts)
				return opts
			}
			for _, tt := range []struct {
				name      string
				namespace string
				opts      metav1.ListOptions
				keys      string
				revision  storage.Revision
			}{
				{"the second", "", at(second), "a/one a/two", second},
				{"the third", "", at(third), "a/one a/two b/three", third},
				{"limit 1", "", metav1.ListOptions{ResourceVersion: fmt.Sprint(third), Limit: 1}, "a/one", third},
				{"limit 3", "", metav1.ListOptions{ResourceVersion: fmt.Sprint(third), Limit: 3}, "a/one a/two b/three", third},
				{"by label", "", with(at(third), func(o *metav1.ListOptions) { o.LabelSelector = "app=x" }), "a/one b/three", third},
				{"by field", "", with(at(third), func(o *metav1.ListOptions) { o.Limit, o.FieldSelector = 1, "spec.nodeName=n1" }), "a/one", third},
				{"of a namespace", "b", at(third), "b/three", third},
				{"continued", "", metav1.ListOptions{Continue: token}, "a/two b/three", third},
				{"a page continued", "", metav1.ListOptions{Continue: token, Limit: 1}, "a/two", third},
				{"a page of a namespace continued", "a", metav1.ListOptions{Continue: inNamespace, Limit: 1}, "a/two", third},
			} {
				keys, page := f.list(Scope{Resource: f.pods, Namespace: tt.namespace}, tt.opts)
				if keys != tt.keys || page.Meta.ResourceVersion != fmt.Sprint(tt.revision) {
					t.Errorf("%s: %q at %s, want %q at %d", tt.name, keys, page.Meta.ResourceVersion, tt.keys, tt.revision)
				}
			}
			wantPages(t, f, third)
			must(t, f.store.Compact(t.Context(), third+1))
			wantExpired(t, f, token, third)
			if first >= second {
				t.Errorf("revisions %d and %d", first, second)
			}
		})
	}
}

// TestCompactedRevisionsHaveExpired although the cache keeps them for watches, and nothing has changed since;
// others go on.
func TestCompactedRevisionsHaveExpired(t *testing.T) {
	compacted := storage.Revision(0)
	f := newFixture(t, func(s *setup) {
		s.config.Compacted = func(*resource.Resource) storage.Revision { return compacted }
	})
	_, second, _ := f.seed()
	f.remove("a", "two")
	last := f.put(testPod("a", "zzz", map[string]string{"app": "x"}, "n1"))
	_, page := f.list(f.allPods(), metav1.ListOptions{Limit: 1})
	before, err := encodeContinue(second, "", "a/one")
	must(t, err)
	_, err = f.store.Create(t.Context(), "/other", nil, 0)
	must(t, err)

	must(t, f.store.Compact(t.Context(), last))
	compacted = last
	wantExpired(t, f, before, second)
	if keys, _ := f.list(f.allPods(), at(last)); keys != "a/one a/zzz b/three" {
		t.Errorf("the revision that the store was compacted to is %q", keys)
	}
	if keys, _ := f.list(f.allPods(), metav1.ListOptions{Continue: page.Meta.Continue}); keys != "a/zzz b/three" {
		t.Errorf("the rest of a list at that revision is %q", keys)
	}
	must(t, f.store.Compact(t.Context(), last+1))
	compacted = last + 1
	wantExpired(t, f, page.Meta.Continue, last)

	retained, err := f.reader.ListRetained(t.Context(), f.allPods(), new(at(second)))
	must(t, err)
	if keys := keysOf(retained); keys != "a/one a/two" {
		t.Errorf("the cache keeps %q", keys)
	}
	if _, err := f.cache.Watch(watchcache.WatchOptions{After: second}); err != nil {
		t.Errorf("a watch does not resume: %v", err)
	}
}

// TestCompactionThatIsNotOne: what the store can still read has not expired.
func TestCompactionThatIsNotOne(t *testing.T) {
	f := newFixture(t, func(s *setup) {
		s.config.Compacted = func(*resource.Resource) storage.Revision { return 1000 }
	})
	_, second, _ := f.seed()
	if keys, _ := f.list(f.allPods(), at(second)); keys != "a/one a/two" {
		t.Errorf("the store has %q", keys)
	}
}

// wantPages reads a collection at a revision in pages of one object.
func wantPages(t *testing.T, f *fixture, revision storage.Revision) {
	t.Helper()
	var all []string
	opts := at(revision)
	for range 5 {
		opts.Limit = 1
		keys, page := f.list(f.allPods(), opts)
		all = append(all, keys)
		if page.Meta.RemainingItemCount != nil {
			t.Errorf("remainingItemCount %d is a guess", *page.Meta.RemainingItemCount)
		}
		if page.Meta.Continue == "" {
			break
		}
		opts = metav1.ListOptions{Continue: page.Meta.Continue}
	}
	if got := strings.Join(all, ", "); got != "a/one, a/two, b/three" {
		t.Errorf("the pages are %q", got)
	}
}

// wantExpired reads at a revision that the store has compacted.
func wantExpired(t *testing.T, f *fixture, token string, revision storage.Revision) {
	t.Helper()
	_, err := f.reader.List(t.Context(), f.allPods(), &metav1.ListOptions{Continue: token})
	if err == nil {
		t.Fatal("after compaction a list goes on")
	}
	got := status.Of(err)
	if got.Code != 410 || !apierrors.IsResourceExpired(err) || got.Continue == "" ||
		!strings.HasPrefix(got.Message, "The provided continue parameter is too old to display a consistent list result. You can") {
		t.Fatalf("after compaction a continued list got %+v, want Expired with another token", got)
	}
	if rest, _ := f.list(f.allPods(), metav1.ListOptions{Continue: got.Continue}); rest != "a/zzz b/three" {
		t.Errorf("the rest as it is now is %q", rest)
	}
	_, err = f.reader.List(t.Context(), f.allPods(), new(at(revision)))
	got = status.Of(err)
	if got.Code != 410 || !apierrors.IsResourceExpired(err) || got.Continue != "" {
		t.Errorf("after compaction an exact read got %+v, want Expired", got)
	}
	if want := "The resourceVersion for the provided list is too old."; got.Message != want {
		t.Errorf("message %q, want %q", got.Message, want)
	}
}

// A page may take several reads of the store.
func TestLongPageFromTheStore(t *testing.T) {
	const total = 2*storeBatch + 10
	var revision storage.Revision
	f := newFixture(t, func(s *setup) {
		s.history = func(f *fixture) {
			for i := range total {
				revision = f.put(testPod("a", fmt.Sprintf("pod-%04d", i), map[string]string{"even": fmt.Sprint(i%2 == 0)}, ""))
			}
			f.remove("a", "pod-0000")
		}
	})
	all, _ := f.list(f.allPods(), at(revision))
	if got := len(strings.Fields(all)); got != total {
		t.Errorf("%d objects of %d", got, total)
	}
	opts := at(revision)
	opts.LabelSelector, opts.Limit = "even=true", 504
	even, page := f.list(f.allPods(), opts)
	if keys := strings.Fields(even); len(keys) != 504 || keys[503] != "a/pod-1006" || page.Meta.Continue == "" {
		t.Fatalf("%d objects up to the middle, continue %q", len(keys), page.Meta.Continue)
	}
	last, rest := f.list(f.allPods(), metav1.ListOptions{LabelSelector: "even=true", Limit: 504, Continue: page.Meta.Continue})
	if last != "a/pod-1008" || rest.Meta.Continue != "" {
		t.Errorf("the last page is %q, continue %q", last, rest.Meta.Continue)
	}
}
