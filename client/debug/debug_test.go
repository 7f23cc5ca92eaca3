package debug

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/internal/debugapi"
)

// pods is an informer that stands still.
type pods struct{ informer.Informer }

func (pods) Name() string         { return "pods" }
func (pods) EstimateBytes() int64 { return 5000 }
func (pods) Stats() informer.Stats {
	return informer.Stats{
		Indexes: []cache.IndexSize{{Name: "byNode", Values: 2}},
		Objects: 3, Queued: 1, Events: 9,
		Reflector: reflector.Stats{Watches: 4, Resumes: map[reflector.ResumeReason]int64{"": 3}, LastError: errors.New("refused")},
		Handlers:  []informer.HandlerStats{{Name: "slow", Queued: 2, Lag: 3 * time.Second, Busy: 10 * time.Second, Delivered: 5, Coalesced: 1, Err: informer.ErrOverflow}},
	}
}

func (pods) Freshness() informer.Freshness {
	return informer.Freshness{Version: "17", AsOf: time.Now(), Age: 250 * time.Millisecond, Synced: true}
}

type source []informer.Informer

func (s source) Informers() []informer.Informer { return s }

func TestInformers(t *testing.T) {
	h := Informers("test", source{pods{}})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, debugapi.InformersPath, nil))
	var got debugapi.Informers
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := []debugapi.Informer{{
		Name: "pods", Synced: true, AgeMillis: 250, ResourceVersion: "17", Objects: 3, Bytes: 5000, Indexes: []debugapi.Index{{Name: "byNode", Values: 2}}, Queued: 1, Events: 9, Watches: 4, Resumes: 3, LastError: "refused",
		Handlers: []debugapi.Handler{{Name: "slow", Queued: 2, LagMillis: 3000, BusyMillis: 10_000, Delivered: 5, Coalesced: 1, Error: informer.ErrOverflow.Error()}},
	}}
	if got.Program != "test" || !reflect.DeepEqual(got.Items, want) {
		t.Errorf("got %+v", got)
	}
	w = httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, debugapi.InformersPath, nil)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// TestOtherSitesMayNotRead: pages of this machine alone.
func TestOtherSitesMayNotRead(t *testing.T) {
	for origin, allowed := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://localhost:6443": true, "https://[::1]:6443": true,
		"https://example.com": false, "https://127.0.0.1.example.com": false, "null": false, "": false, "https://localhost.example.com": false, "::": false,
	} {
		r := httptest.NewRequest(http.MethodGet, debugapi.InformersPath, nil)
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		Informers("test", source{}).ServeHTTP(w, r)
		if got := w.Header().Get("Access-Control-Allow-Origin"); (got != "") != allowed || allowed && got != origin {
			t.Errorf("%s: %q", origin, got)
		}
	}
}

// TestOtherNamesOfThisMachine: a site whose name leads here by DNS reads nothing.
func TestOtherNamesOfThisMachine(t *testing.T) {
	for _, test := range []struct {
		remote, host string
		code         int
	}{
		{"127.0.0.1:4711", "127.0.0.1:8080", http.StatusOK}, {"127.0.0.1:4711", "localhost:8080", http.StatusOK}, {"[::1]:4711", "[::1]:8080", http.StatusOK},
		{"127.0.0.1:4711", "localhost", http.StatusOK},
		{"127.0.0.1:4711", "rebound.example.com:8080", http.StatusMisdirectedRequest}, {"[::1]:4711", "localhost.example.com", http.StatusMisdirectedRequest},
		{"127.0.0.1:4711", "", http.StatusMisdirectedRequest}, {"127.0.0.1:4711", "a b", http.StatusMisdirectedRequest},
		{"10.1.2.3:4711", "my-controller.default.svc:8080", http.StatusOK},
	} {
		r := httptest.NewRequest(http.MethodGet, debugapi.InformersPath, nil)
		r.RemoteAddr, r.Host = test.remote, test.host
		w := httptest.NewRecorder()
		if Informers("test", source{}).ServeHTTP(w, r); w.Code != test.code {
			t.Errorf("%q from %s: %d", test.host, test.remote, w.Code)
		}
	}
}
