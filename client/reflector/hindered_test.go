package reflector

import (
	"net/http"
	"testing"
	"time"
)

// Where each request for a watch fails for a minute, whatever it is answered with, and the server answers a list,
// lists stand for the watch until that is opened. A server that is away, or busy, is not asked for them.
func TestListingWhatIsHinderedFromWatching(t *testing.T) {
	const failures = 10 // take a minute
	begin := step{"list 0", list("5", "a 3")}
	one := list("8 more", "b 7")
	for name, hindered := range map[string]answer{"503": refusal("503"), "a proxy's 504": page(504), "404": refusal("404"), "406": refusal("406"),
		"a proxy's 404": page(404), "409": refusal("409"), "500": page(500), "no header in time": hold} {
		bad := step{"watch 5", hindered}
		n := failures
		if name == "no header in time" {
			n = 5
		}
		scenario{name: name, opts: Options{PagedList: true, OpenTimeout: 15 * time.Second}, any: true, look: one,
			discovery: raw(`{"kind":"APIResourceList","resources":[{"name":"configmaps"}]}`),
			steps: join([]step{begin}, times(n, bad), []step{{"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hindered},
				{"list 8 NotOlderThan", list("9", "c 9")}, {"watch 9", events("ADDED d 10", after(time.Minute, end))}},
				times(4, step{"watch 10", hindered}), []step{{"watch 10", hold}}),
			store: "c:9 d:10", version: "10", check: func(t *testing.T, _ *script, s Stats) {
				if s.Lists[ListUnwatched] != 2 {
					t.Errorf("%+v", s)
				}
			}}.play(t)
		scenario{name: name + ", and no list either", opts: Options{PagedList: true, OpenTimeout: 15 * time.Second, GoneAfter: -1}, any: true,
			steps: join([]step{begin}, times(2*n, bad), []step{{"watch 5", hold}}), store: "a:3", version: "5"}.play(t)
	}
	hung := 0
	scenario{name: "a server that hangs is asked once a minute", opts: Options{PagedList: true, OpenTimeout: 15 * time.Second}, any: true,
		look:  func(s *script, w http.ResponseWriter, r *http.Request) { hung++; <-r.Context().Done() },
		steps: join([]step{begin}, times(14, step{"watch 5", hold}), []step{{"watch 5", events("ADDED b 6", hold)}}), store: "a:3 b:6", version: "6",
		check: func(t *testing.T, s *script, _ Stats) {
			if last := s.at[len(s.at)-1]; hung != 2 || last > 8*time.Minute {
				t.Errorf("asked %d times for a list in %v", hung, last)
			}
			hung = 0
		}}.play(t)
	scenario{name: "429", opts: Options{PagedList: true}, any: true, look: one,
		steps: join([]step{begin}, times(2*failures, step{"watch 5", refusal("429")}), []step{{"watch 5", hold}}), store: "a:3", version: "5"}.play(t)
	scenario{name: "by polling", opts: Options{PollTimeout: 10 * time.Second}, any: true, look: one,
		steps: join([]step{begin}, times(failures, step{"watch 5", page(503)}), []step{{"list 5 NotOlderThan", list("8", "b 7")}, {"watch 8", hold}}),
		store: "b:7", version: "8"}.play(t)
}
