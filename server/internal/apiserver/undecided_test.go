package apiserver

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/levelwire/levelwire/internal/debugapi"
	"github.com/levelwire/levelwire/server/internal/auth"
)

// hesitating is an authorizer that allows everything, but users with a slow name only when
// it is released, as a webhook that does not answer.
type hesitating struct {
	verb     string        // which alone it hesitates to allow; empty: all
	asked    chan struct{} // receives at each question about such a user
	released chan struct{}
}

// Authorize implements auth.Authorizer.
func (h *hesitating) Authorize(ctx context.Context, a auth.Attributes) (auth.Decision, string, error) {
	if strings.HasPrefix(a.User.Name, "slow") && (h.verb == "" || h.verb == a.Verb) {
		select {
		case h.asked <- struct{}{}:
		case <-h.released:
			return auth.Allow, "", nil
		}
		select {
		case <-h.released:
		case <-ctx.Done():
			return auth.NoOpinion, "", ctx.Err()
		}
	}
	return auth.Allow, "", nil
}

// TestUndecidedWatchesAreBounded: a user's watches, and requests as another user, that wait
// for a slow authorizer are refused beyond the user's share, and other users have theirs.
func TestUndecidedWatchesAreBounded(t *testing.T) {
	for name, test := range map[string]struct{ verb, path, header string }{
		"watch":         {path: "/api/v1/pods?watch=true"},
		"impersonation": {path: "/api/v1/pods?watch=true", header: "Impersonate-User: other-than-USER"},
		"window":        {path: debugapi.WindowPath + "/api/v1/pods?watch=true", header: asTable, verb: "watch"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hesitating{verb: test.verb, asked: make(chan struct{}), released: make(chan struct{})}
			c := newCluster(t, func(s *setup) {
				s.config.Authorizer, s.config.Tokens, s.config.MaxReadsInFlight = h, userTokens("slow", "slow-too"), 4
			})
			headers := func(user string) []string {
				if test.header == "" {
					return []string{asUser(user)}
				}
				return []string{asUser(user), strings.ReplaceAll(test.header, "USER", user)} // each has watches of its own
			}
			var waiting sync.WaitGroup
			defer waiting.Wait()
			defer close(h.released)
			wait := func(user string) {
				t.Helper()
				waiting.Go(func() {
					resp := c.open(t.Context(), c.client, http.MethodGet, test.path, "", headers(user)...)
					if resp.StatusCode != http.StatusOK {
						t.Errorf("%s, once it is decided: %s", user, resp.Status)
					}
					must(t, resp.Body.Close())
				})
				<-h.asked
			}
			for range 3 {
				wait("slow")
			}
			got := c.get(test.path, headers("slow")...)
			if got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
				t.Errorf("the watch of a user with three undecided ones: %d %s", got.code, got.body)
			}
			if n := c.server.deciding.InUse(); n != 3 {
				t.Errorf("%d requests wait for a decision", n)
			}
			wait("slow-too")
		})
	}
}
