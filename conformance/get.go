package conformance

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var getGuarantees = []Guarantee{
	{Name: "get/consistent", Source: sourceCacheRead, check: checkGetConsistent,
		Sentence: "A get without a version shows every write acknowledged before it."},
	{Name: "get/any-at-rv-0", Source: sourceConcepts, check: checkGetAny,
		Sentence: "A get at version 0 answers with some state of the object."},
	{Name: "get/not-older-than", Source: sourceConcepts, check: checkGetNotOlder,
		Sentence: "A get at version N shows a state of the collection that is at least as new."},
	{Name: "get/version-too-large", Source: sourceConcepts, check: checkGetTooLarge,
		Sentence: "A get at a version in the future is a 504 Timeout with the cause ResourceVersionTooLarge."},
	{Name: "get/version-not-a-number", Source: sourceConcepts, check: checkGetNotNumber,
		Sentence: "A get at a version that is not a number is refused (400; kube-apiserver says 500)."},
	{Name: "get/not-found", Source: sourceConcepts, check: checkGetNotFound,
		Sentence: "An object that does not exist is a 404 NotFound that names it."},
}

func (e *Env) getObject(name, query string) object {
	answer := e.get(e.configMaps() + "/" + name + "?" + query)
	if answer.code != http.StatusOK {
		e.failf("get of an object that exists: %s", answer)
	}
	var o object
	e.must(answer.decode(&o))
	return o
}

func checkGetConsistent(e *Env) {
	e.create("a")
	for i := range consistentRounds {
		written := e.update("a", strconv.Itoa(i))
		if seen := e.getObject("a", ""); seen.version() != written.version() || seen.Data["content"] != strconv.Itoa(i) {
			e.failf("after version %s was acknowledged, a get shows %s", written.version(), seen.version())
		}
	}
}

func checkGetAny(e *Env) {
	made := e.create("a")
	e.getObject("a", "")
	within := max(anyWithin, e.limit())
	for begin := time.Now(); ; {
		answer := e.get(e.configMaps() + "/a?resourceVersion=0")
		if answer.code == http.StatusNotFound && time.Since(begin) < within {
			continue // a state of before the object was made
		}
		var seen object
		if answer.code != http.StatusOK {
			e.failf("get of an object that exists: %s", answer)
		}
		e.must(answer.decode(&seen))
		switch {
		case seen.Kind != "ConfigMap":
			e.failf("version 0 is of kind %q", seen.Kind)
		case seen.Metadata.UID == made.Metadata.UID:
			return
		case time.Since(begin) > within:
			e.late(within, "version 0 is %s for more than %s, and not %s", seen.Metadata.UID, within, made.Metadata.UID)
		}
	}
}

// anyWithin is how long a server may show an older state as any state: that of before the
// object was made, or of a former object of the name. Caches that are behind do.
const anyWithin = 5 * time.Second

func checkGetNotOlder(e *Env) {
	e.create("a")
	for i := range consistentRounds {
		written := e.update("a", strconv.Itoa(i))
		seen := e.getObject("a", "resourceVersion="+written.version())
		if later(e, written.version(), seen.version()) {
			e.failf("asked for %s or newer, the object is at %s", written.version(), seen.version())
		}
	}
}

func checkGetTooLarge(e *Env) {
	e.create("a")
	e.refusesSoon(request{path: e.configMaps() + "/a?resourceVersion=" + e.future()}, wantLarge)
}

func checkGetNotNumber(e *Env) {
	e.create("a")
	e.refusesVersion(e.configMaps() + "/a?resourceVersion=yesterday")
}

// refusesVersion demands a 400, or the 500 that kube-apiserver gives.
func (e *Env) refusesVersion(path string) {
	answer := e.get(path)
	if answer.code != http.StatusBadRequest && answer.code != http.StatusInternalServerError {
		e.failf("a version that is not a number: %s", answer)
	}
	_, err := answer.status()
	e.must(err)
}

func checkGetNotFound(e *Env) {
	answer := e.get(e.configMaps() + "/missing")
	s, err := answer.status()
	e.must(err)
	e.must(want{code: 404, reason: metav1.StatusReasonNotFound, says: `configmaps "missing" not found`}.compare(s))
	if answer.code != 404 || s.Details == nil || s.Details.Name != "missing" || s.Details.Kind != "configmaps" {
		e.failf("the details do not name the object: %s", answer)
	}
}

var fieldGuarantees = []Guarantee{
	{Name: "select/labels", Source: sourceConcepts, check: checkLabelSelectors,
		Sentence: "Label selectors: =, !=, in, notin, key, !key, joined by commas."},
	{Name: "select/field-name", Source: sourceConcepts, check: checkFieldName,
		Sentence: "metadata.name and metadata.namespace can be selected by on every kind."},
	{Name: "select/field-of-kind", Source: sourceConcepts, check: checkFieldOfKind,
		Sentence: "Pods can be selected by their own fields: spec.nodeName, spec.restartPolicy, status.phase and more."},
	{Name: "select/field-unknown", Source: sourceConcepts, check: checkFieldUnknown,
		Sentence: "An unknown field in a selector is a 400, on lists and watches."},
}

func checkLabelSelectors(e *Env) {
	e.create("a", "color=red", "size=l")
	e.create("b", "color=blue")
	e.create("c", "size=s")
	for _, row := range []struct {
		selector string
		want     []string
	}{
		{"color=red", []string{"a"}},
		{"color==red", []string{"a"}},
		{"color!=red,size", []string{"c"}},
		{"color in (red,blue)", []string{"a", "b"}},
		{"color notin (red),color", []string{"b"}},
		{"color", []string{"a", "b"}},
		{"!color,size", []string{"c"}},
		{"color=red,size=s", nil},
	} {
		if got := e.list("labelSelector=" + url.QueryEscape(row.selector)).names(); !slices.Equal(got, row.want) && len(got)+len(row.want) > 0 {
			e.failf("%s selects %v, not %v", row.selector, got, row.want)
		}
	}
}

func checkFieldName(e *Env) {
	e.createSome("p", 3)
	if got := e.list("fieldSelector=metadata.name%3Dp1").names(); !slices.Equal(got, []string{"p1"}) {
		e.failf("metadata.name=p1 selects %v", got)
	}
	if got := e.list("fieldSelector=metadata.name%21%3Dp1"); got.find("p0") == nil || got.find("p1") != nil || got.find("p2") == nil {
		e.failf("metadata.name!=p1 selects %v", got.names())
	}
	got := e.listAt("/api/v1/configmaps", "fieldSelector=metadata.name%3Dp1,metadata.namespace%3D"+e.namespace)
	if len(got.Items) != 1 || got.Items[0].Metadata.Namespace != e.namespace {
		e.failf("metadata.namespace=%s and a name select %v of all namespaces", e.namespace, got.names())
	}
}

func checkFieldOfKind(e *Env) {
	e.createPod("a")
	for _, row := range []struct {
		selector string
		selected bool
	}{
		{"spec.nodeName=", true},
		{"spec.nodeName=elsewhere", false},
		{"spec.restartPolicy=Never", true},
		{"spec.restartPolicy!=Never", false},
		{"spec.schedulerName=levelwire-verify", true},
		{"status.phase=Pending", true},
		{"status.phase=Running", false},
		{"status.phase!=Running,metadata.name=a", true},
	} {
		got := e.listAt(e.pods(), "fieldSelector="+url.QueryEscape(row.selector))
		if selected := got.find("a") != nil; selected != row.selected {
			e.failf("%s selects the pod: %v", row.selector, selected)
		}
	}
}

func checkFieldUnknown(e *Env) {
	w := want{code: 400, reason: metav1.StatusReasonBadRequest}
	e.refuses(request{path: e.configMaps() + "?fieldSelector=spec.nodeName%3Dx"}, w)
	e.refuses(request{path: e.configMaps() + "?watch=true&timeoutSeconds=1&fieldSelector=spec.nodeName%3Dx"}, w)
}
