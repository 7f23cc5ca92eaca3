package watchcache

import "testing"

// TestRefillOfWhatWasMadeAnew: a client that knows the object that was deleted while the cache had
// lost its position gets the deletion, although the new object is not selected and the log is gone.
func TestRefillOfWhatWasMadeAnew(t *testing.T) {
	a, b := podA, podB
	a.Node, a.Labels = "n1", map[string]string{"app": "web"}
	anew := a
	anew.Node, anew.Labels = "n2", nil
	for _, selection := range []*Selection{selecting(t, "", "", "app=web", ""), selecting(t, "", "", "", "spec.nodeName=n1")} {
		for _, opts := range []Options{{}, {HistoryEvents: 1}} {
			c := filled(t, opts, a)
			o := objectOf(t, c, anew, 18)
			o.CreatedRevision, o.SelectorsStableSince = 18, 18
			if _, err := c.Fill([]*Object{o}, 20); err != nil {
				t.Fatal(err)
			}
			c.Apply([]Change{put(t, c, b, 30), put(t, c, b, 31)})
			expect(t, drain(t, watching(t, c, WatchOptions{After: 10, Selection: selection})), "DELETED one/a@11")
		}
	}
}

// TestCorrectionsComeInTime: a client that breaks off behind any of them, and resumes on another
// server, misses nothing: what is written comes at its own revision, which several may share, and
// deletions before.
func TestCorrectionsComeInTime(t *testing.T) {
	d, e := pod{Namespace: "two", Name: "d"}, pod{Namespace: "two", Name: "e"}
	for name, test := range map[string]struct {
		fill func(*testing.T, *Cache) []*Object
		want []string
	}{
		"deletions first": {func(t *testing.T, c *Cache) []*Object {
			return []*Object{objectOf(t, c, podA, 15), objectOf(t, c, d, 20)}
		}, []string{"DELETED one/b@10", "DELETED two/c@11", "MODIFIED one/a@15", "ADDED two/d@20"}},
		"of one revision": {func(t *testing.T, c *Cache) []*Object {
			return []*Object{objectOf(t, c, podA, 20), objectOf(t, c, podB, 1), objectOf(t, c, podC, 1), objectOf(t, c, d, 20), objectOf(t, c, e, 20)}
		}, []string{"MODIFIED one/a@20", "ADDED two/d@20", "ADDED two/e@20"}},
		"left out before": {func(t *testing.T, c *Cache) []*Object {
			return []*Object{objectOf(t, c, podA, 1), objectOf(t, c, podB, 1), objectOf(t, c, podC, 1), objectOf(t, c, d, 5), objectOf(t, c, e, 20)}
		}, []string{"ADDED two/d@11", "ADDED two/e@20"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := filled(t, Options{}, podA, podB, podC)
			w := watching(t, c, WatchOptions{After: 10})
			if _, err := c.Fill(test.fill(t, c), 20); err != nil {
				t.Fatal(err)
			}
			expect(t, drain(t, w), test.want...)
		})
	}
}
