package relay

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
)

// forgetful is an upstream of config maps that lists all past states, and watches from recent ones only, as
// kube-apiserver does whose watch cache keeps less than its etcd.
type forgetful struct {
	current, oldest int64 // the version that is current, and the oldest to watch from
	refusesFirst    bool  // the status of the answer refuses, and not the first event
	idle            bool  // watches bring nothing

	mu      sync.Mutex
	lists   []string // the versions that were listed; "" is the most recent one
	watches []string // the versions from which a watch was accepted that need not end soon
}

const expired = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}`

// ServeHTTP implements http.Handler.
func (f *forgetful) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := req.URL.Query()
	version := query.Get("resourceVersion")
	switch {
	case req.URL.Path == "/api/v1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["list","watch"]}]}`)
	case query.Get("watch") != "":
		f.watch(w, req, version)
	default:
		if query.Get("limit") != "1" { // which is the question for the current version
			f.mu.Lock()
			f.lists = append(f.lists, version)
			f.mu.Unlock()
		}
		if version == "" {
			version = strconv.FormatInt(f.current, 10)
		}
		_, _ = fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":%q},"items":[]}`, version)
	}
}

func (f *forgetful) watch(w http.ResponseWriter, req *http.Request, version string) {
	query := req.URL.Query()
	from, err := strconv.ParseInt(version, 10, 64)
	switch {
	case err != nil: // that begins with the state
		http.Error(w, "it cannot be streamed", http.StatusBadRequest)
		return
	case from < f.oldest && f.refusesFirst:
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, expired)
		return
	case from < f.oldest:
		_, _ = fmt.Fprintf(w, `{"type":"ERROR","object":%s}`+"\n", expired)
		return
	}
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds")) // which the relay always gives
	if seconds > tryWatchFor {
		f.mu.Lock()
		f.watches = append(f.watches, version)
		f.mu.Unlock()
	}
	if !f.idle {
		_, _ = io.WriteString(w, bookmark(int(f.current), ""))
	}
	_ = http.NewResponseController(w).Flush()
	end := time.NewTimer(time.Duration(seconds) * time.Second)
	defer end.Stop()
	select {
	case <-end.C:
	case <-req.Context().Done():
	}
}

func (f *forgetful) seen() (lists, watches []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lists), slices.Clone(f.watches)
}

// TestFillFromWhereTheUpstreamHasHistory: of the past states that the upstream lists, the cache is filled with one from which the
// upstream is willing to watch, so that it does not list again, and the cache serves the watch of a client that comes with a version.
func TestFillFromWhereTheUpstreamHasHistory(t *testing.T) {
	const current, has = 50_000, 49_990
	for name, test := range map[string]struct {
		upstream *forgetful
		want     string // the list
		passedOn bool
	}{
		"all history":           {&forgetful{oldest: 1}, "39990", false},
		"much history":          {&forgetful{oldest: 45_000}, "48990", false},
		"little history":        {&forgetful{oldest: 49_800}, "49890", false},
		"very little history":   {&forgetful{oldest: 49_950}, "49990", false},
		"refused by the status": {&forgetful{oldest: 49_950, refusesFirst: true}, "49990", false},
		"nothing changes":       {&forgetful{oldest: 49_950, idle: true}, "49990", false},
		"too little history":    {&forgetful{oldest: 49_995}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := test.upstream
			upstream.current = current
			r, _ := runningRelayOf(t, upstream)
			res, err := r.kinds.find(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
			if err != nil {
				t.Fatal(err)
			}
			s := r.newSource(res)
			query := url.Values{"watch": {"true"}, "resourceVersion": {strconv.Itoa(has)}}
			s.past.want(query)
			s.start()
			lists := testwait.Stable(t, "a stream of the upstream", func() ([]string, bool) {
				lists, watches := upstream.seen()
				return lists, len(watches) > 0
			})
			if !slices.Equal(lists, []string{test.want}) {
				t.Errorf("the lists are of %q, want %q", lists, test.want)
			}
			err = s.prepareVersion(t.Context(), httptest.NewRequest(http.MethodGet, "/api/v1/configmaps?"+query.Encode(), nil), request.VerbWatch)
			if (err != nil) != test.passedOn {
				t.Errorf("the watch of a client: %v", err)
			}
		})
	}
}
