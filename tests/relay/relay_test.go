package relay

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/conformance"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// startRelay starts a relay in front of a server.
func startRelay(t *testing.T, upstream *rest.Config, change ...func(*server.Config)) *levelwiretest.Server {
	t.Helper()
	return levelwiretest.Start(t, append([]func(*server.Config){func(c *server.Config) {
		c.Relay = &server.Relay{Config: upstream}
	}}, change...)...)
}

// configMaps returns the config maps of the namespace default.
func configMaps(t *testing.T, s served) client.Resource[*corev1.ConfigMap] {
	t.Helper()
	return client.For[*corev1.ConfigMap](s.Client(client.Options{})).Namespace(metav1.NamespaceDefault)
}

func create(t *testing.T, to client.Resource[*corev1.ConfigMap], name string) *corev1.ConfigMap {
	t.Helper()
	made, err := to.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// metric reads a counter or gauge of a server, added up over its labels.
func metric(t *testing.T, s served, name string) (sum float64) {
	t.Helper()
	response, err := s.Client(client.Options{}).Raw(t.Context(), client.RawRequest{Path: "/metrics"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v\n%s", response.Status, err, text)
	}
	for line := range strings.Lines(string(text)) {
		var value float64
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == ' ' || rest[0] == '{') {
			if _, err := fmt.Sscan(rest[strings.LastIndexByte(rest, ' '):], &value); err != nil {
				t.Fatal(err)
			}
			sum += value
		}
	}
	return sum
}

// TestGuaranteesHoldThroughRelays tries what levelwire verify does, all but those marked slow,
// through one relay and through three in a row.
func TestGuaranteesHoldThroughRelays(t *testing.T) {
	upstream := levelwiretest.Start(t)
	relays := []*levelwiretest.Server{startRelay(t, upstream.Config())}
	for len(relays) < 3 {
		relays = append(relays, startRelay(t, relays[len(relays)-1].Config(), withDeltas))
	}
	t.Run("hops", func(t *testing.T) {
		for _, hops := range []int{1, 3} {
			t.Run(fmt.Sprint(hops), func(t *testing.T) {
				t.Parallel() // most of the time is spent waiting
				passEach(t, relays[hops-1].Config(), 115)
			})
		}
	})
	for i, relay := range relays {
		if made, broken := metric(t, relay, "levelwire_relay_caches_made_total"), metric(t, relay, "levelwire_relay_caches_broken_total"); made == 0 || broken != 0 {
			t.Errorf("relay %d has made %v caches, of which %v broke", i+1, made, broken)
		}
	}
}

// passEach fails unless each guarantee is kept, and so many could be tried. What is not decided, because the machine was too
// busy, says nothing of the relays: it is tried once more, one at a time.
func passEach(t *testing.T, server *rest.Config, atLeast int) {
	passed, undecided := tryEach(t, server, conformance.Options{Parallel: 3})
	if len(undecided) > 0 {
		var names []string
		for _, result := range undecided {
			names = append(names, regexp.QuoteMeta(result.Name))
		}
		var more int
		more, undecided = tryEach(t, server, conformance.Options{Parallel: 1, Run: regexp.MustCompile("^(" + strings.Join(names, "|") + ")$")})
		passed += more
	}
	for _, result := range undecided {
		t.Errorf("%s: %s: %s", result.Name, result.Verdict, result.Reason)
	}
	if passed < atLeast {
		t.Errorf("%d guarantees were tried, which is too few", passed)
	}
}

// tryEach reports the guarantees that fail. It returns how many pass, and those that are not decided.
func tryEach(t *testing.T, server *rest.Config, opts conformance.Options) (passed int, undecided []conformance.Result) {
	report, err := conformance.Run(t.Context(), server, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range report.Results {
		switch result.Verdict {
		case conformance.Fail:
			t.Errorf("%s: %s", result.Name, result.Reason)
		case conformance.NotDecided:
			undecided = append(undecided, result)
		}
	}
	return report.Count(conformance.Pass), undecided
}

// TestOneStreamForAllClients: the upstream has one watch of a resource, whatever the number
// of the relay's clients.
func TestOneStreamForAllClients(t *testing.T) {
	upstream := levelwiretest.Start(t)
	relay := startRelay(t, upstream.Config())
	through := configMaps(t, relay)
	list, err := through.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var watches []*client.Watch[*corev1.ConfigMap]
	for i := range 20 {
		opts := metav1.ListOptions{ResourceVersion: list.ResourceVersion}
		if i%2 == 0 {
			opts.FieldSelector = "metadata.name=here"
		}
		w, err := through.Watch(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		watches = append(watches, w)
	}
	made := create(t, configMaps(t, upstream), "here")
	for _, w := range watches {
		event, err := w.Next()
		if err != nil || event.Object.Name != "here" || event.Object.ResourceVersion != made.ResourceVersion {
			t.Fatalf("%v, %v, want the object at the upstream's version %s", event, err, made.ResourceVersion)
		}
	}
	if open := metric(t, upstream, "apiserver_longrunning_requests"); open > 2+roleStreams {
		t.Errorf("the upstream has %v open watches", open)
	}
	if passed := metric(t, relay, "levelwire_relay_older_watches_total"); passed != 0 {
		t.Errorf("%v watches were passed on", passed)
	}
}

// roleStreams is how many streams a relay has that are not of its caches: one of each kind by which
// RBAC decides.
const roleStreams = 4

// TestReadYourWrites: what a client has written through a relay, or around it, is in its next
// list through any relay.
func TestReadYourWrites(t *testing.T) {
	upstream := levelwiretest.Start(t)
	readYourWrites(t, startRelay(t, upstream.Config()), startRelay(t, upstream.Config()), upstream)
}

// readYourWrites writes by each of three servers, and lists at the others.
func readYourWrites(t *testing.T, servers ...served) {
	var writers []client.Resource[*corev1.ConfigMap]
	for _, s := range servers {
		writers = append(writers, configMaps(t, s))
	}
	for i := range 30 {
		name := fmt.Sprint("written-", i)
		create(t, writers[i%3], name)
		list, err := writers[(i+1)%3].List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%s: %v, %v", name, list, err)
		}
		exact, err := writers[(i+2)%3].List(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		if err != nil || len(exact.Items) < i+1 {
			t.Fatalf("%s: not older than %s: %v", name, list.ResourceVersion, err)
		}
	}
}

// TestClientsMoveWithTheirVersions from the upstream to a relay that has just started, to
// another relay, and back, without missing or repeating an event, and without a list.
func TestClientsMoveWithTheirVersions(t *testing.T) {
	upstream := levelwiretest.Start(t)
	moveWithVersion(t, upstream, startRelay(t, upstream.Config()), startRelay(t, upstream.Config()), upstream, startRelay(t, upstream.Config()))
}

// moveWithVersion watches at one server after the other, from the version that the one before has shown.
func moveWithVersion(t *testing.T, upstream served, servers ...served) {
	direct := configMaps(t, upstream)
	version := create(t, direct, "begin").ResourceVersion
	create(t, direct, "missed-0")
	for i, s := range servers {
		w, err := configMaps(t, s).Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		event, err := w.Next()
		if want := fmt.Sprint("missed-", i); err != nil || event.Object.Name != want {
			t.Fatalf("server %d: %v, %v, want %s", i, event, err, want)
		}
		version = event.Object.ResourceVersion
		w.Close()
		create(t, direct, fmt.Sprint("missed-", i+1))
	}
}

// TestAgeIsDeclared in every answer from a cache.
func TestAgeIsDeclared(t *testing.T) {
	relay := startRelay(t, levelwiretest.Start(t).Config())
	response, err := relay.Client(client.Options{}).Raw(t.Context(), client.RawRequest{Path: "/api/v1/namespaces?resourceVersion=0"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK || response.Header.Get("Age") == "" {
		t.Errorf("%s, Age %q", response.Status, response.Header.Get("Age"))
	}
}
