package apiserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/auth"
)

const nodeToken = "the-token-of-a-node"

// fairly switches priority and fairness on, for an attacker, an administrator, a node and
// the test's user.
func fairly(seats int) func(*setup) {
	return func(s *setup) {
		s.seats = seats
		s.config.Tokens = auth.NewStaticTokens(map[string]auth.User{
			testToken:   {Name: "tester", Groups: []string{"testers"}},
			greedyToken: {Name: "greedy"},
			adminToken:  {Name: "admin", Groups: []string{auth.Masters}},
			nodeToken:   {Name: "system:node:n1", Groups: []string{"system:nodes"}},
		})
	}
}

// metric returns the value of a metric of a level at /metrics; "" if there is none.
func (c *cluster) metric(name, labels string) string {
	c.t.Helper()
	metrics := string(c.get("/metrics", "Authorization: Bearer "+adminToken).body)
	if labels != "" {
		labels = "{" + labels + "}"
	}
	_, rest, ok := strings.Cut(metrics, "\n"+name+labels+" ")
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

const ofGlobalDefault = `flow_schema="global-default",priority_level="global-default"`

// TestANoisyUserDelaysNoOther: 2,000 lists of one user, which hang, leave seats to others
// of the same priority level, to nodes and to administrators.
func TestANoisyUserDelaysNoOther(t *testing.T) {
	const asked, queued = 2000, 300 // a hand of 6 queues of 50
	g := &gate{entered: make(chan struct{}, asked), open: make(chan struct{})}
	c := newCluster(t, fairly(200), func(s *setup) { g.Reader, s.config.Store = s.config.Store, g })
	c.cached(c.put(testPod("a", "one", nil, "")))
	var attackers []*attacker
	for range 2 {
		a := c.attackKnown(greedyToken)
		for range asked / 2 {
			a.send("GET", "/api/v1/pods", true) // which waits for the gate
		}
		attackers = append(attackers, a)
	}
	refused := func() string {
		return c.metric("apiserver_flowcontrol_rejected_requests_total", ofGlobalDefault+`,reason="queue-full"`)
	}
	testwait.Stable(t, "the queue of the noisy user is full", func() (any, bool) {
		waiting, refused := c.metric("apiserver_flowcontrol_current_inqueue_requests", ofGlobalDefault), refused()
		return []string{waiting, refused}, waiting == fmt.Sprint(queued) && refused != ""
	})
	for _, token := range []string{testToken, nodeToken, adminToken} {
		for _, path := range []string{"/api/v1/namespaces/a/pods/one?resourceVersion=0", "/api/v1/pods?resourceVersion=0"} {
			for range 20 {
				if got := c.get(path, "Authorization: Bearer "+token); got.code != http.StatusOK {
					t.Fatalf("%s: %d %s", token, got.code, got.body)
				}
			}
		}
	}
	if got := c.post(testToken); got.code != http.StatusCreated {
		t.Errorf("%d %s", got.code, got.body)
	}
	dump := string(c.get("/debug/api_priority_and_fairness/dump_queues", "Authorization: Bearer "+adminToken).body)
	if !strings.Contains(dump, `"greedy",`) || !strings.Contains(dump, "300,") {
		t.Errorf("the dump does not show who waits:\n%s", dump)
	}
	if dump := string(c.get("/debug/api_priority_and_fairness/dump_requests", "Authorization: Bearer "+adminToken).body); strings.Count(dump, `"greedy",`) != 300 {
		t.Errorf("the dump of the requests has not those that wait:\n%.500s", dump)
	}
	close(g.open)
	codes := map[string]int{}
	for _, a := range attackers {
		for code, n := range a.answered(asked / 2) {
			codes[code] += n
		}
	}
	if codes["200"] < queued || codes["200"]+codes["429"] != asked {
		t.Errorf("answers: %v", codes)
	}
	testwait.Stable(t, "seats are given back", func() (any, bool) {
		seen := c.metric("apiserver_flowcontrol_current_executing_seats", ofGlobalDefault)
		return seen, seen == "0"
	})
}

// TestAnswersSayHowTheyWereClassified, by headers, for each kind of request.
func TestAnswersSayHowTheyWereClassified(t *testing.T) {
	c := newCluster(t, fairly(200))
	testwait.Stable(t, "the stored objects are used", func() (any, bool) {
		seen := c.get("/api/v1/pods").header.Get("X-Kubernetes-PF-FlowSchema-UID")
		return seen, seen != ""
	})
	for path, want := range map[string]string{
		"flowschemas/global-default":                 "X-Kubernetes-PF-FlowSchema-UID",
		"prioritylevelconfigurations/global-default": "X-Kubernetes-PF-PriorityLevel-UID",
	} {
		got := c.get("/apis/flowcontrol.apiserver.k8s.io/v1/" + path)
		uid := got.header.Get(want)
		if !strings.Contains(string(got.body), `"uid":"`+uid+`"`) || uid == "" {
			t.Errorf("%s: %s is %q in the answer %s", path, want, uid, got.body)
		}
	}
	// Also if the request is refused, or a watch.
	for _, path := range []string{"/api/v1/nosuch", "/nosuch", "/api/v1/pods?watch=1&timeoutSeconds=1", "/api"} { //passes: the watch ends by it
		if got := c.get(path); got.header.Get("X-Kubernetes-PF-FlowSchema-UID") == "" {
			t.Errorf("%s: %d %v", path, got.code, got.header)
		}
	}
	if got := c.get("/debug/api_priority_and_fairness/dump_priority_levels"); got.code != http.StatusOK || !strings.Contains(string(got.body), "global-default,") {
		t.Errorf("%d %s", got.code, got.body)
	}
	if got := c.get("/debug/api_priority_and_fairness/dump_requests"); got.code != http.StatusOK || !strings.HasPrefix(string(got.body), "PriorityLevelName,") {
		t.Errorf("%d %s", got.code, got.body)
	}
	if got := c.get("/debug/api_priority_and_fairness/dump_nothing"); got.code != http.StatusNotFound {
		t.Errorf("%d %s", got.code, got.body)
	}
}

// TestRefusedRequestsSayWhenToComeBack: with status 429 and Retry-After.
func TestRefusedRequestsSayWhenToComeBack(t *testing.T) {
	g := &gate{entered: make(chan struct{}, 1000), open: make(chan struct{})}
	c := newCluster(t, fairly(1), func(s *setup) { g.Reader, s.config.Store = s.config.Store, g })
	a := c.attackKnown(greedyToken)
	for range 400 {
		a.send("GET", "/api/v1/pods", true)
	}
	testwait.Stable(t, "the queue is full", func() (any, bool) {
		seen := c.metric("apiserver_flowcontrol_current_inqueue_requests", ofGlobalDefault)
		return seen, seen == "300"
	})
	got := c.get("/api/v1/pods", "Authorization: Bearer "+greedyToken)
	if s := got.status(t); got.code != http.StatusTooManyRequests || s.Reason != "TooManyRequests" || got.header.Get("Retry-After") != "1" {
		t.Errorf("%d %v %s", got.code, got.header, got.body)
	}
	close(g.open)
	a.answered(400)
}

// TestWatchesHoldSeatsOnlyAtFirst: none remains when their initial events are sent, or
// while the client does not open the window of its connection for them.
func TestWatchesHoldSeatsOnlyAtFirst(t *testing.T) {
	c := newCluster(t, fairly(200))
	rev := c.put(testPod("a", "one", nil, ""))
	const watches = 300 // more than there are seats
	a := c.attackKnown(testToken)
	for range watches {
		a.send("GET", "/api/v1/pods?watch=1&resourceVersion=0", true)
	}
	if codes := a.answered(watches); codes["200"] != watches {
		t.Errorf("answers: %v", codes)
	}
	c.watch("/api/v1/pods?watch=1&resourceVersion=0").want(fmt.Sprintf("ADDED one@%d", rev))
	testwait.Stable(t, "watches give back their seats", func() (any, bool) {
		seen := c.metric("apiserver_flowcontrol_current_executing_requests", ofGlobalDefault)
		return seen, seen == "0"
	})
}

// TestWidthOfWhatIsVisible: a list of what its user may see needs seats for that, once it is known.
func TestWidthOfWhatIsVisible(t *testing.T) {
	c := visibleCluster(t, "jane")
	for i := range 300 {
		c.put(testPod([]string{"a", "b", "b"}[i%3], fmt.Sprint("pod-", i), nil, ""))
	}
	testwait.Stable(t, "the pods are there", func() (any, bool) { seen := c.caches[c.pods].Current().Len(); return seen, seen == 300 })
	c.bind("a", "watcher", "jane")
	width := func(path string) int {
		t.Helper()
		r, err := http.NewRequest("GET", path, nil)
		must(t, err)
		target := targetOf(r, auth.User{Name: "jane"}.AsAuthenticated())
		return c.server.width(r, &target.attributes)
	}
	if got := width(visiblePods); got != 3 {
		t.Errorf("%d seats before it is known what the user may see, want 3", got)
	}
	names, _, _, _ := c.namesIn(visiblePods, asUser("jane"))
	if got := width(visiblePods); len(names) != 100 || got != 1 {
		t.Errorf("%d seats for a list of %d, want 1 for 100", got, len(names))
	}
	if got := width("/api/v1/pods"); got != 3 {
		t.Errorf("%d seats without the parameter, want 3", got)
	}
}

// TestWidth: requests need seats by the objects that they read and the bytes of these.
func TestWidth(t *testing.T) {
	c := newCluster(t, fairly(200))
	for i := range 250 {
		c.put(testPod([]string{"a", "b"}[i%2], fmt.Sprint("pod-", i), nil, ""))
	}
	testwait.Stable(t, "the pods are there", func() (any, bool) { seen := c.caches[c.pods].Current().Len(); return seen, seen == 250 })
	const pods, inA = "/api/v1/pods", "/api/v1/namespaces/a/pods"
	check := func(method, path string, want int) {
		t.Helper()
		r, err := http.NewRequest(method, path, nil)
		must(t, err)
		target := targetOf(r, auth.User{})
		if got := c.server.width(r, &target.attributes); got != want {
			t.Errorf("%s %s has %d seats, want %d", method, path, got, want)
		}
	}
	check("GET", pods, 3)
	check("GET", inA, 2)
	check("GET", pods+"?limit=50", 1)
	check("GET", pods+"?limit=50&labelSelector=x", 3) // which may have to read them all: nobody has asked before
	check("GET", pods+"?labelSelector=!x", 3)
	check("GET", pods+"?limit=x", 3)
	check("GET", pods+"?fieldSelector=metadata.name%3Dpod-1", 1)
	check("GET", inA+"/pod-0", 1)
	check("GET", pods+"?watch=1", 3)
	check("GET", pods+"?watch=1&resourceVersion=0", 3)
	check("GET", pods+"?watch=1&resourceVersion=7", 1)
	check("GET", pods+"?watch=1&resourceVersion=7&sendInitialEvents=true", 3)
	check("DELETE", inA, 2)
	check("POST", inA, 1)
	check("GET", "/api/v1/configmaps", 1)
	check("GET", "/api/v1/nosuch", 1)
	check("GET", "/metrics", 1)
	c.get(pods + "?resourceVersion=0&labelSelector=x") // after which the index answers
	check("GET", pods+"?limit=50&labelSelector=x", 1)
	check("GET", pods+"?labelSelector=x", 1)
	check("GET", pods+"?watch=1&labelSelector=x", 1)
	check("GET", pods+"?labelSelector=x+in+("+strings.Repeat("y,", maxParsedSelector)+"y)", 3)
	check("GET", pods+"?labelSelector=!x", 3)
	check("GET", pods+"?labelSelector=(", 3)
	check("GET", pods+"?fieldSelector=metadata.namespace%3Da", 2)
	check("GET", pods+"?fieldSelector=spec.nodeName%3Dn1", 1)
	big := testPod("big", "big", nil, "")
	big.Annotations = map[string]string{"fill": strings.Repeat("x", 500<<10)}
	for range 3 {
		c.put(big)
		big.Name += "-"
	}
	testwait.Stable(t, "the pods are there", func() (any, bool) { seen := c.caches[c.pods].Current().Len(); return seen, seen == 253 })
	check("GET", pods, maxSeats)
}
