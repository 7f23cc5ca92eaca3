package apiserver

import (
	"net/http"
	"runtime"
	"testing"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/runqueue"
)

// TestHandlersOfAUserComputeInTurns over both protocols: a request waits while as many
// handlers of its user compute as there are processors. Those of other users, of
// administrators and of health checks do not, nor does one of the same user at another priority
// level.
func TestHandlersOfAUserComputeInTurns(t *testing.T) {
	const otherToken = "the-token-of-another-user"
	for name, change := range map[string]func(*setup){
		"fairness": fairly(200),
		"none":     func(*setup) {},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, change, func(s *setup) {
				s.config.Tokens = auth.NewStaticTokens(map[string]auth.User{
					testToken: {Name: "tester"}, greedyToken: {Name: "greedy"}, otherToken: {Name: "other"}, adminToken: {Name: "admin", Groups: []string{auth.Masters}},
					nodeToken: {Name: "system:node:n1", Groups: []string{"system:nodes"}},
				})
			})
			start := func(resource, user string, groups ...string) (end func()) {
				level, _ := c.server.levelOf(&auth.Attributes{User: auth.User{Name: user, Groups: append(groups, auth.Authenticated)}, Verb: "list", Version: "v1", Resource: resource})
				tasks := make([]runqueue.Task, runtime.GOMAXPROCS(0))
				for i := range tasks {
					tasks[i].Start(c.server.handlers, level, user)
				}
				return func() {
					for i := range tasks {
						tasks[i].End()
					}
				}
			}
			delayed := func() string { return c.metric("levelwire_runqueue_delayed_total", "") }
			for _, client := range []*http.Client{c.http1, c.http2} {
				c.client = client
				end := start("pods", "greedy")
				before := delayed()
				for _, request := range []struct{ token, path string }{{otherToken, "/api/v1/pods"}, {otherToken, "/version"}, {adminToken, "/api/v1/pods"}, {greedyToken, "/readyz"}} {
					if got := c.get(request.path, "Authorization: Bearer "+request.token); got.code != http.StatusOK {
						t.Errorf("%s: %d", request.path, got.code)
					}
				}
				if after := delayed(); after != before || after == "" {
					t.Errorf("requests had to wait for another user's: %q before, %q after", before, after)
				}
				// The tasks lapse when a request has waited for them.
				if got := c.get("/api/v1/pods", "Authorization: Bearer "+greedyToken); got.code != http.StatusOK {
					t.Errorf("%d", got.code)
				}
				if after := delayed(); after == before {
					t.Error("a request did not wait for others of its user")
				}
				end()
				if c.server.config.Fairness == nil {
					continue
				}
				end = start("nodes", "system:node:n1", "system:nodes") // at node-high, and their pods at system
				before = delayed()
				if got := c.get("/api/v1/pods", "Authorization: Bearer "+nodeToken); got.code != http.StatusOK {
					t.Errorf("%d", got.code)
				}
				if after := delayed(); after != before {
					t.Errorf("a request had to wait for its user's at another level: %q before, %q after", before, after)
				}
				end()
			}
		})
	}
}
