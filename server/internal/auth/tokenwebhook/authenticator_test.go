package tokenwebhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/auth/tokencache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hook is a webhook in the process of the test: it knows one token for each audience.
type hook struct {
	*httptest.Server
	asked   atomic.Int64
	version atomic.Value // of the last review
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		h.version.Store(review.APIVersion)
		review.Status = authenticationv1.TokenReviewStatus{}
		switch review.Spec.Token {
		case "good":
			review.Status.Authenticated = true
			review.Status.User = authenticationv1.UserInfo{Username: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
		case "vault's":
			review.Status.Authenticated, review.Status.Audiences = true, []string{"vault"}
			review.Status.User.Username = "jane"
		case "nameless":
			review.Status.Authenticated = true
		case "locked":
			review.Status.Error = "the account is locked"
		case "broken":
			http.Error(w, "broken", http.StatusForbidden) // a server error would be repeated
			return
		case "hang":
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(&review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// kubeconfig writes a file that names the webhook.
func (h *hook) kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "webhook.kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: hook, cluster: {server: '" + h.URL + "/review'}}]\n" +
		"users: [{name: me, user: {}}]\ncontexts: [{name: hook, context: {cluster: hook, user: me}}]\ncurrent-context: hook\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWebhook(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		h := newHook(t)
		a := New(Options{Version: version, TTL: time.Minute, Audiences: []string{"me"}})
		if err := a.Load(h.kubeconfig(t)); err != nil {
			t.Fatal(err)
		}
		for name, test := range map[string]struct {
			token     string
			audiences []string
			user      string
			asks      int64 // of two requests
			err       error
		}{
			"known":            {"good", []string{"me"}, "jane", 1, nil},
			"another audience": {"good", []string{"vault"}, "", 1, auth.ErrUnknownToken},
			"restricted":       {"vault's", []string{"vault", "me"}, "jane", 1, nil},
			"not for us":       {"vault's", []string{"me"}, "", 1, auth.ErrUnknownToken},
			"unknown":          {"x", []string{"me"}, "", 1, auth.ErrUnknownToken},
			"a reason":         {"locked", []string{"me"}, "", 2, tokencache.ErrUnavailable},
			"broken":           {"broken", []string{"me"}, "", 2, tokencache.ErrUnavailable},
		} {
			before := h.asked.Load()
			for range 2 {
				identity, err := a.AuthenticateToken(t.Context(), test.token, test.audiences)
				if identity.User.Name != test.user || !errors.Is(err, test.err) {
					t.Errorf("%s: %+v, %v", name, identity, err)
				}
				if name == "known" && (identity.User.UID != "7" || !identity.User.In("dev") || len(identity.User.Extra["k"]) != 1) {
					t.Errorf("%+v", identity)
				}
				if name == "restricted" && !slices.Equal(identity.Audiences, []string{"vault"}) {
					t.Errorf("%+v", identity)
				}
			}
			if got := h.asked.Load() - before; got != test.asks {
				t.Errorf("%s: asked %d times, want %d", name, got, test.asks)
			}
		}
		if _, err := a.AuthenticateToken(t.Context(), "nameless", nil); err == nil {
			t.Error("a user without a name")
		}
		if got := h.version.Load(); got != "authentication.k8s.io/"+version {
			t.Errorf("asked in %v", got)
		}
	}
}

// TestHangingWebhook: a request waits no longer than it wants to.
func TestHangingWebhook(t *testing.T) {
	h := newHook(t)
	a := New(Options{Version: "v1", TTL: time.Minute})
	if err := a.Load(h.kubeconfig(t)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) //passes: the webhook never answers
	defer cancel()
	if _, err := a.AuthenticateToken(ctx, "hang", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if _, err := a.AuthenticateToken(t.Context(), "good", nil); err != nil {
		t.Errorf("another token meanwhile: %v", err)
	}
	h.CloseClientConnections()
}

// TestReload: another webhook is asked from then on, and what the former one has said is
// forgotten. A file that is broken changes nothing.
func TestReload(t *testing.T) {
	former, next := newHook(t), newHook(t)
	a := New(Options{Version: "v1", TTL: time.Minute})
	for _, h := range []*hook{former, next} {
		if err := a.Load(h.kubeconfig(t)); err != nil {
			t.Fatal(err)
		}
		if _, err := a.AuthenticateToken(t.Context(), "good", nil); err != nil || h.asked.Load() != 1 {
			t.Errorf("%v, asked %d times", err, h.asked.Load())
		}
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("clusters: 7"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Load(broken); err == nil {
		t.Error("a broken file was loaded")
	}
	if _, err := a.AuthenticateToken(t.Context(), "good", nil); err != nil {
		t.Error(err)
	}
	if err := New(Options{Version: "v2"}).Load(next.kubeconfig(t)); err == nil {
		t.Error("a version that does not exist")
	}
}
