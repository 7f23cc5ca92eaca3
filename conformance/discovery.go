package conformance

import (
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var discoveryGuarantees = []Guarantee{
	{Name: "discovery/versions", Source: sourceConcepts, check: checkDiscoveryVersions,
		Sentence: "/api lists the core versions, /apis the groups with their versions and the preferred one."},
	{Name: "discovery/resources", Source: sourceConcepts, check: checkDiscoveryResources,
		Sentence: "/api/v1 lists the resources with kind, scope and verbs."},
	{Name: "discovery/aggregated", Source: sourceDiscovery, check: checkDiscoveryAggregated,
		Sentence: "/api and /apis come aggregated to clients that ask for it, and the Content-Type says so."},
}

func checkDiscoveryVersions(e *Env) {
	var versions metav1.APIVersions
	e.must(e.get("/api").decode(&versions))
	if versions.Kind != "APIVersions" || !slices.Contains(versions.Versions, "v1") {
		e.failf("/api: %+v", versions)
	}
	var groups metav1.APIGroupList
	e.must(e.get("/apis").decode(&groups))
	if groups.Kind != "APIGroupList" {
		e.failf("/apis is a %q", groups.Kind)
	}
	for _, group := range groups.Groups {
		if group.Name == "" || len(group.Versions) == 0 || !slices.Contains(group.Versions, group.PreferredVersion) {
			e.failf("the group %q prefers %q among %v", group.Name, group.PreferredVersion.Version, group.Versions)
		}
		for _, version := range group.Versions {
			if version.GroupVersion != group.Name+"/"+version.Version {
				e.failf("the group %q has the version %+v", group.Name, version)
			}
		}
	}
}

func checkDiscoveryResources(e *Env) {
	var resources metav1.APIResourceList
	e.must(e.get("/api/v1").decode(&resources))
	i := slices.IndexFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == "configmaps" })
	if resources.Kind != "APIResourceList" || resources.GroupVersion != "v1" || i < 0 {
		e.failf("/api/v1 is a %s of %s, configmaps at %d", resources.Kind, resources.GroupVersion, i)
	}
	r := resources.APIResources[i]
	if r.Kind != "ConfigMap" || !r.Namespaced || !slices.Contains(r.Verbs, "watch") || !slices.Contains(r.Verbs, "list") {
		e.failf("configmaps are %+v", r)
	}
}

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func checkDiscoveryAggregated(e *Env) {
	for _, path := range []string{"/api", "/apis"} {
		answer := e.get(path, "Accept: "+aggregated+",application/json")
		if kind := strings.ReplaceAll(answer.header.Get("Content-Type"), " ", ""); answer.code != http.StatusOK || !strings.HasPrefix(kind, aggregated) {
			e.failf("%s: %d, Content-Type %q", path, answer.code, kind)
		}
		var groups apidiscoveryv2.APIGroupDiscoveryList
		e.must(answer.decode(&groups))
		if groups.Kind != "APIGroupDiscoveryList" || groups.APIVersion != "apidiscovery.k8s.io/v2" {
			e.failf("%s is a %s of %s", path, groups.Kind, groups.APIVersion)
		}
		if path == "/api" && !servesConfigMaps(groups.Items) {
			e.failf("/api has no configmaps that can be watched")
		}
	}
}

func servesConfigMaps(groups []apidiscoveryv2.APIGroupDiscovery) bool {
	for _, group := range groups {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				if r.Resource == "configmaps" && r.Scope == apidiscoveryv2.ScopeNamespace && slices.Contains(r.Verbs, "watch") &&
					r.ResponseKind != nil && r.ResponseKind.Kind == "ConfigMap" {
					return true
				}
			}
		}
	}
	return false
}

var writeErrorGuarantees = []Guarantee{
	{Name: "write/conflict", Source: sourceConcepts, check: checkConflict,
		Sentence: "An update that carries an older version than the object's is a 409 Conflict."},
	{Name: "write/already-exists", Source: sourceConcepts, check: checkAlreadyExists,
		Sentence: "Creating what exists is a 409 AlreadyExists that names it."},
	{Name: "write/dry-run-unknown", Source: sourceConcepts,
		Sentence: "dryRun with anything but All is a 422 Invalid.",
		check: func(e *Env) {
			e.refuses(request{method: http.MethodPost, path: e.configMaps() + "?dryRun=some", body: configMap("a", "1")}, wantInvalid)
		}},
	{Name: "write/dry-run", Source: sourceConcepts, check: checkDryRun,
		Sentence: "dryRun=All answers as if it had been done, and nothing is stored or shown to watchers."},
	{Name: "write/field-validation-unknown", Source: sourceConcepts,
		Sentence: "fieldValidation with an unknown value is a 422 Invalid.",
		check: func(e *Env) {
			e.refuses(request{method: http.MethodPost, path: e.configMaps() + "?fieldValidation=Sometimes", body: configMap("a", "1")}, wantInvalid)
		}},
	{Name: "write/json-patch-test", Source: sourceObserved, check: checkJSONPatchTest,
		Sentence: "A JSON patch whose test fails is a 422 Invalid and changes nothing."},
}

func checkConflict(e *Env) {
	old := e.create("a")
	e.update("a", "2")
	body := strings.Replace(configMap("a", "3"), `"metadata":{`, `"metadata":{"resourceVersion":"`+old.version()+`",`, 1)
	e.refuses(request{method: http.MethodPut, path: e.configMaps() + "/a", body: body},
		want{code: 409, reason: metav1.StatusReasonConflict})
}

func checkAlreadyExists(e *Env) {
	e.create("a")
	e.refuses(request{method: http.MethodPost, path: e.configMaps(), body: configMap("a", "1")},
		want{code: 409, reason: metav1.StatusReasonAlreadyExists, says: `configmaps "a" already exists`})
}

func checkDryRun(e *Env) {
	w := e.watch("resourceVersion=" + e.create("a").version())
	answer := e.do(request{method: http.MethodPost, path: e.configMaps() + "?dryRun=All", body: configMap("b", "1")})
	if answer.code != http.StatusCreated {
		e.failf("a dry run: %s", answer)
	}
	if e.list("").find("b") != nil {
		e.failf("a dry run was stored")
	}
	e.create("c")
	w.expect("ADDED", "c")
}

func checkJSONPatchTest(e *Env) {
	made := e.create("a")
	e.refuses(request{
		method: http.MethodPatch, path: e.configMaps() + "/a", headers: []string{"Content-Type: application/json-patch+json"},
		body: `[{"op":"test","path":"/data/content","value":"else"},{"op":"replace","path":"/data/content","value":"2"}]`,
	}, wantInvalid)
	if now := e.getObject("a", ""); now.version() != made.version() {
		e.failf("the object is at version %s, was at %s", now.version(), made.version())
	}
}
