package reflector

import "testing"

// The functions of Options that panic, each time, cost nothing but their calls. The version moves, though OnProgress
// is called with the lock that guards it.
func TestOptionsThatPanic(t *testing.T) {
	opts := Options{PagedList: true,
		OnProgress: func(string) { panic("progress") },
		OnError:    func(string, error) { panic("report") },
		Rand:       func() float64 { panic("random") }}
	scenario{name: "all of them", opts: opts,
		steps: []step{{"list 0", list("5", "a 3")}, {"watch 5", events("MODIFIED a 6,ERROR 500", end)}, {"watch 6", events("ADDED b 7,BOOKMARK 9", hold)}},
		store: "a:6 b:7", version: "9", any: true, check: func(t *testing.T, _ *script, s Stats) {
			if s.Panics < 7 || s.LastError != nil { // of versions 5, 6, 7 and 9, an error, and the numbers of three requests
				t.Errorf("%+v", s)
			}
		}}.play(t)
}
