package garbage

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/scheme"
)

// TestGroupsThatMayLackKinds: an owner waits for groups that cannot be asked, if they may have kinds that are not known, for a
// minute from when that began.
func TestGroupsThatMayLackKinds(t *testing.T) {
	away := schema.GroupVersion{Group: "example.com", Version: "v1"}
	served := []discovery.Resource{{Mapping: scheme.Mapping{Kind: away.WithKind("Widget"), Resource: "widgets"}}}
	failed := map[schema.GroupVersion]error{away: errors.New("away")}
	all := map[schema.GroupVersion]error{{Group: "*", Version: "*"}: errors.New("no groups")}
	succeed := func(d *discoveries) { d.end(time.Now(), served, nil) }
	fail := func(d *discoveries) { d.end(time.Now(), nil, failed) }
	type step = func(d *discoveries)
	define := func(name string) step { return func(d *discoveries) { d.change(groupOf(name)) } }
	for name, tt := range map[string]struct {
		steps []step // with ten seconds after each
		from  int    // the number of the step from which on an owner waits; -1: it does not
	}{
		"it was never known":                        {[]step{fail}, 0},
		"it was never known, and another changes":   {[]step{fail, define("a.other.example.com"), fail}, 0},
		"it was known":                              {[]step{succeed, fail}, -1},
		"it was known, and another changes":         {[]step{succeed, fail, define("a.other.example.com"), fail}, -1},
		"it was known, and changes":                 {[]step{succeed, fail, define("a.example.com"), fail}, 2},
		"it was known, and its APIService changes":  {[]step{succeed, fail, define("v1.example.com"), fail}, 2},
		"it changes again":                          {[]step{define("v1.example.com"), fail, define("v1.example.com"), fail}, 2},
		"it changed before it was known":            {[]step{define("v1.example.com"), succeed, fail}, -1},
		"any may have changed":                      {[]step{succeed, fail, define(""), fail}, 2},
		"it was known, and no group can be asked":   {[]step{succeed, func(d *discoveries) { d.end(time.Now(), nil, all) }}, -1},
		"no group can be asked after a change":      {[]step{succeed, define("a.other.example.com"), func(d *discoveries) { d.end(time.Now(), nil, all) }}, 1},
		"it was known, then no group can be asked":  {[]step{succeed, func(d *discoveries) { d.end(time.Now(), nil, all) }, fail}, -1},
		"it comes later, and is not known":          {[]step{func(d *discoveries) { d.end(time.Now(), nil, nil) }, define("a.other.example.com"), fail}, 2},
		"it went, and comes again":                  {[]step{succeed, func(d *discoveries) { d.end(time.Now(), nil, nil) }, define("a.other.example.com"), fail}, 3},
		"it can be asked":                           {[]step{fail, define("a.example.com"), succeed}, -1},
		"it is known only by what it served before": {[]step{func(d *discoveries) { d.end(time.Now(), served, failed) }}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDiscoveries()
				times := []time.Time{}
				for _, do := range tt.steps {
					times = append(times, time.Now())
					do(d)
					time.Sleep(10 * time.Second) // of the bubble
				}
				got := d.missing(d.changed())
				if !got.answered || (got.reason != nil) != (tt.from >= 0) || tt.from >= 0 && !got.from.Equal(times[tt.from]) {
					t.Errorf("got %v, from %v on; want from step %d of %v on", got.reason, got.from, tt.from, times)
				}
				if n := len(d.groups.changed) + len(d.groups.from) + len(d.groups.known); n > 3 {
					t.Errorf("%d groups are remembered", n)
				}
			})
		})
	}
}

// TestWhatIsLostIsAskedForAgain, also for an owner that has waited since before: a server that starts may serve less for a moment.
func TestWhatIsLostIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiscoveries()
		d.change("example.com")
		defined := d.changed()
		time.Sleep(2 * settle) // of the bubble
		d.end(time.Now(), nil, nil)
		if !d.missing(defined).answered {
			t.Error("the server was asked, and the owner waits")
		}
		d.lose()
		if d.missing(defined).answered {
			t.Error("the owner does not wait, although a resource was lost")
		}
		time.Sleep(settle)
		d.end(time.Now(), nil, nil)
		if !d.missing(defined).answered {
			t.Error("the server was asked again, and the owner waits")
		}
	})
}
