package watchcache

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/levelwire/levelwire/server/internal/resource"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/server/internal/watchcache/state"
)

// TestEventsCostWhatTheirInterestCosts: an event goes into the logs, and
// wakes the watchers, of those interests only that it touches before or after.
func TestEventsCostWhatTheirInterestCosts(t *testing.T) {
	web := map[string]string{"app": "web"}
	for name, test := range map[string]struct {
		selection           [4]string // namespace, name, labels, fields
		touching, unrelated pod
	}{
		"namespace":        {[4]string{"one"}, podA, podC},
		"key":              {[4]string{"one", "a"}, podA, podB},
		"name anywhere":    {[4]string{"", "a"}, podA, podB},
		"name by selector": {[4]string{"one", "", "", "metadata.name=a"}, podA, podB},
		"field":            {[4]string{"", "", "", "spec.nodeName=n1"}, podA, podB},
		"label":            {[4]string{"", "", "app=web"}, podC, podB},
		"label in":         {[4]string{"", "", "app in (web)"}, podC, podB},
		"leaving":          {[4]string{"", "", "app=web"}, pod{Namespace: "two", Name: "was-web"}, podB},
	} {
		t.Run(name, func(t *testing.T) {
			c := filled(t, Options{}, pod{Namespace: "two", Name: "was-web", Labels: web})
			s := test.selection
			w := watching(t, c, WatchOptions{After: 10, Selection: selecting(t, s[0], s[1], s[2], s[3])})
			<-w.Ready()
			drain(t, w)
			c.Apply([]Change{put(t, c, test.unrelated, 11)})
			if len(w.ready) != 0 || w.bucket.log.Len() != 0 {
				t.Error("an unrelated event woke the watcher or is in its log")
			}
			c.Apply([]Change{put(t, c, test.touching, 12)})
			if len(w.ready) != 1 || w.bucket.log.Len() != 1 {
				t.Error("an event of interest did not arrive")
			}
			if got := c.Stats(); got.Wakes != 1 || got.Buckets != 1 {
				t.Errorf("stats %+v, want one wake-up and one bucket", got)
			}
			if len(drain(t, w)) != 1 {
				t.Error("the event was not delivered")
			}
			w.Close()
			if got := c.Stats(); got.Buckets != 0 || got.Watchers != 0 {
				t.Errorf("stats %+v after the last watcher has closed", got)
			}
		})
	}
}

// TestNarrowestInterestWins: of several equalities the one that the recent
// events touch least finds the watcher.
func TestNarrowestInterestWins(t *testing.T) {
	c := filled(t, Options{})
	for i := range 50 {
		c.Apply([]Change{put(t, c, pod{Namespace: "one", Name: fmt.Sprint("p", i), Phase: "Running", Labels: map[string]string{"app": fmt.Sprint(i % 5)}}, rev(11+i))})
	}
	w := watching(t, c, WatchOptions{After: 60, Selection: selecting(t, "one", "", "app=3", "status.phase=Running")})
	if got := w.bucket.interest; got.Kind != state.ByLabel {
		t.Errorf("chosen: %+v, want the label, which a fifth of the events have", got)
	}
}

func TestAwakeWatchersAreNotWoken(t *testing.T) {
	c := filled(t, Options{})
	w := watching(t, c, WatchOptions{After: 10})
	for i := range 100 {
		c.Apply([]Change{put(t, c, podA, rev(11+i))})
	}
	if got := c.Stats().Wakes; got != 0 {
		t.Errorf("%d wake-ups of a watcher that does not sleep", got)
	}
	if n := len(drain(t, w)); n != 100 {
		t.Errorf("read %d events", n)
	}
	c.Apply([]Change{put(t, c, podA, 200), put(t, c, podB, 201)})
	if got := c.Stats().Wakes; got != 1 {
		t.Errorf("%d wake-ups for a batch, want 1", got)
	}
}

// TestBucketYoungerThanTheLog: a watcher that starts before its bucket was made
// reads the cache's log first and then its bucket's, without gap or duplicate.
func TestBucketYoungerThanTheLog(t *testing.T) {
	c := filled(t, Options{HistoryEvents: 20, ExactHistory: true})
	next := 11
	apply := func(n int) {
		for range n {
			c.Apply([]Change{put(t, c, pod{Namespace: "one", Name: "x", Node: fmt.Sprint("n", next%2)}, rev(next))})
			next++
		}
	}
	on := selecting(t, "", "", "", "spec.nodeName=n1")
	apply(6)
	w := watching(t, c, WatchOptions{After: 10, Selection: on})
	apply(3)
	expect(t, drain(t, w), "ADDED one/x@11", "DELETED one/x@12", "ADDED one/x@13", "DELETED one/x@14", "ADDED one/x@15",
		"DELETED one/x@16", "ADDED one/x@17", "DELETED one/x@18", "ADDED one/x@19")
	late := watching(t, c, WatchOptions{After: 17, Selection: on})
	if late.bucket != w.bucket || late.catchUpEnd != 0 {
		t.Error("the second watcher does not start in the bucket's log")
	}
	expect(t, drain(t, late), "DELETED one/x@18", "ADDED one/x@19")

	apply(40) // the bucket's log is evicted along with the cache's
	if got := w.bucket.log.Len(); got > 20 {
		t.Errorf("the bucket holds %d events of a history of 20", got)
	}
	if _, err := w.Read(make([]Event, 1)); !errors.Is(err, ErrExpired) {
		t.Errorf("a watcher whose events are evicted: %v", err)
	}
}

func TestUnknownFieldNamesTheAlternatives(t *testing.T) {
	_, err := NewSelection(podResource(), "", "", nil, fields.ParseSelectorOrDie("spec.image=x"))
	var unknown *UnknownFieldError
	if !errors.As(err, &unknown) || err.Error() != `field label not supported: "spec.image" is not selectable for pods: use one of metadata.name, metadata.namespace, spec.nodeName, status.phase` {
		t.Errorf("error is %v", err)
	}
}

func TestClusterScopedObjectsAreInNoNamespace(t *testing.T) {
	for field, want := range map[string]bool{"metadata.namespace=x": false, "metadata.namespace=": true, "metadata.namespace!=x": true} {
		s, err := NewSelection(nodeResource(), "", "", nil, fields.ParseSelectorOrDie(field))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Matches(&Object{Key: "n", Attributes: resource.Attributes{Name: "n"}}); got != want || s.Everything() {
			t.Errorf("%s: %v, want %v; everything: %v", field, got, want, s.Everything())
		}
	}
}

func TestSelectionMatches(t *testing.T) {
	c := filled(t, Options{})
	o := objectOf(t, c, pod{Namespace: "one", Name: "a", Node: "n1", Phase: "Running", Labels: map[string]string{"app": "web", "tier": "3"}}, 1)
	for _, test := range []struct {
		namespace, name, label, field string
		want                          bool
	}{
		{want: true},
		{namespace: "one", want: true},
		{namespace: "two"},
		{name: "a", want: true},
		{name: "b"},
		{label: "app", want: true},
		{label: "!app"},
		{label: "!other", want: true},
		{label: "app=web,tier=3", want: true},
		{label: "app!=web"},
		{label: "other!=web", want: true},
		{label: "app in (db,web)", want: true},
		{label: "app notin (db,web)"},
		{label: "other notin (db)", want: true},
		{label: "other in (db)"},
		{label: "tier>2", want: true},
		{label: "tier>3"},
		{label: "tier<4", want: true},
		{label: "app<4"},
		{label: "other<4"},
		{field: "spec.nodeName=n1", want: true},
		{field: "spec.nodeName!=n1"},
		{field: "spec.nodeName=n1,status.phase=Running", want: true},
		{field: "spec.nodeName=n1,status.phase=Pending"},
		{field: "metadata.name=a,metadata.namespace=one", want: true},
		{field: "metadata.name!=a"},
		{field: "metadata.namespace!=one"},
		{namespace: "one", field: "metadata.namespace=two"},
		{name: "a", field: "metadata.name=b"},
	} {
		s := selecting(t, test.namespace, test.name, test.label, test.field)
		if got := s.Matches(o); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
		if want := test == struct {
			namespace, name, label, field string
			want                          bool
		}{want: true}; s.Everything() != want {
			t.Errorf("%+v: Everything is %v", test, s.Everything())
		}
		if allocated := testing.AllocsPerRun(100, func() { s.Matches(o) }); allocated != 0 {
			t.Errorf("%+v: matching allocates %v times", test, allocated)
		}
		snapshot := filled(t, Options{}, pod{Namespace: "one", Name: "a", Node: "n1", Phase: "Running", Labels: map[string]string{"app": "web", "tier": "3"}}, podC).Current()
		found := false
		for o := range snapshot.Select(s, "") {
			found = found || o.Key == "one/a"
		}
		if found != test.want {
			t.Errorf("%+v: Select finds it: %v", test, found)
		}
	}
	none, err := NewSelection(podResource(), "", "", labels.Nothing(), nil)
	if err != nil || none.Matches(o) || none.Everything() {
		t.Errorf("labels.Nothing matches: %v", err)
	}
}
