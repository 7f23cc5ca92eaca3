package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
)

// TestFaults: whatever fails, a Website comes to be served, and goes when it is deleted,
// and the controller does not ask more of the server than that needs.
func TestFaults(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "example.com", Resource: "websites"}, "first", errors.New("on purpose"))
	for _, test := range []struct {
		name  string
		fault levelwiretest.Fault
		// most is how many requests the controller may send that the fault is about.
		most int
	}{
		// It is done already when the controller tries again: each write may be repeated.
		{"the answer to the finalizer is lost", levelwiretest.Fault{Verb: "patch", Resource: "websites", Times: 1, LoseAnswer: true}, 6},
		{"the answer to each claim is lost", levelwiretest.Fault{Verb: "create", Resource: "configmaps", LoseAnswer: true}, 1},
		{"answers to applies are lost", levelwiretest.Fault{Verb: "patch", Resource: "deployments", Times: 3, LoseAnswer: true}, 8},
		{"the answer to the end of the claim is lost", levelwiretest.Fault{Verb: "deletecollection", Times: 1, LoseAnswer: true}, 2},
		// Another client was faster: the next try is on the new state.
		{"conflicts in the status", levelwiretest.Fault{Verb: "patch", Resource: "websites", Subresource: "status", Times: 5, Err: conflict}, 10},
		// Overload: the client waits for as long as the server asks, and counts nothing as failed.
		{"too many requests", levelwiretest.Fault{Verb: "patch", Times: 5, Err: apierrors.NewTooManyRequests("on purpose", 1)}, 25},
		{"the server is slow", levelwiretest.Fault{Delay: 5 * time.Second}, 30},
		// Watches begin anew; after 410 with a list.
		{"watches expire", levelwiretest.Fault{Verb: "watch", Times: 6, Err: apierrors.NewResourceExpired("on purpose")}, 12},
		{"watches fail", levelwiretest.Fault{Verb: "watch", Times: 6, Err: apierrors.NewInternalError(errors.New("on purpose"))}, 12},
		{"events cannot be written", levelwiretest.Fault{Resource: "events", Err: errors.New("on purpose")}, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faults := new(levelwiretest.Faults)
				faults.Add(test.fault)
				s := begin(t, faults)
				defer s.end()
				s.website("first")
				s.want("first", "Progressing")
				s.serve("first")
				s.want("first", "Serving")
				s.delete("first")
				s.wantGone("first")
				if n := faults.Count(test.fault); n == 0 || n > test.most {
					t.Errorf("%d such requests, want 1 to %d", n, test.most)
				}
			})
		})
	}
}

// TestCutWatches: what happens between two watches is not missed, and nothing is listed
// again for it.
func TestCutWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := new(levelwiretest.Faults)
		s := begin(t, faults)
		defer s.end()
		lists := listed(faults)
		for range 10 {
			if n := faults.CutWatches(); n != 3 {
				t.Fatalf("%d watches run, want those of Websites, Deployments and ConfigMaps", n)
			}
			s.website("first") // without a watch
			s.want("first", "Progressing")
			faults.CutWatches()
			s.serve("first")
			s.want("first", "Serving")
			faults.CutWatches()
			s.delete("first")
			s.wantGone("first")
			s.collect("first")
		}
		if n := listed(faults); n != lists || lists != 3 {
			t.Errorf("%d lists at first, %d after cut watches; want 3, one of each informer, and none", lists, n-lists)
		}
	})
}

// listed returns how often informers have read a whole collection, by a list or by its
// difference from what they held.
func listed(faults *levelwiretest.Faults) int {
	return faults.Count(levelwiretest.Fault{Verb: "list"}) + faults.Count(levelwiretest.Fault{Verb: "difference"})
}

// collect does what the garbage collector would do.
func (s *scene) collect(name string) {
	s.t.Helper()
	all := metav1.ListOptions{LabelSelector: websiteLabel}
	if err := client.For[*corev1.ConfigMap](s.c).Namespace("default").DeleteCollection(s.t.Context(), metav1.DeleteOptions{}, all); err != nil {
		s.t.Fatal(err)
	}
	if err := client.For[*appsv1.Deployment](s.c).Namespace("default").DeleteCollection(s.t.Context(), metav1.DeleteOptions{}, all); err != nil {
		s.t.Fatal(err)
	}
}

// TestServerIsDownForAnHour: the controller asks now and then, and does at once what was
// wanted meanwhile.
func TestServerIsDownForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := new(levelwiretest.Faults)
		s := begin(t, faults)
		defer s.end()
		s.website("first")
		s.want("first", "Progressing")
		s.website("second")
		s.want("second", "HostTaken")

		lists, before := listed(faults), len(faults.Requests())
		watch := levelwiretest.Fault{Verb: "watch"}
		watches := faults.Count(watch)
		faults.SetDown(true)
		s.serve("first") // the test's own client is not affected
		s.delete("second")
		s.website("third")
		time.Sleep(time.Hour)
		watches = faults.Count(watch) - watches
		if watches > 900 {
			t.Errorf("%d watches in the hour, want one of each of the three every 15 s, on average", watches)
		}
		// The controller may have been about to look at the two websites once more: it then tries
		// again, ten times within the first 30 s and every 30 s after that, with two requests.
		if n := len(faults.Requests()) - before - watches; n > 2*2*(10+120) {
			t.Errorf("%d other requests in the hour, want two for each of the two websites every 30 s at most", n)
		}
		if reason := s.reason("third"); reason != "not observed" {
			t.Errorf("third is %s: the server was not down", reason)
		}
		faults.SetDown(false)
		s.want("first", "Serving")
		s.want("third", "HostTaken")
		s.delete("first")
		s.want("third", "Progressing")
		if n := listed(faults); n != lists {
			t.Errorf("%d lists after the hour: watches resume", n-lists)
		}
	})
}
