package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// matrixRequest is a request, and what it asks of the authorizers: all must be allowed.
type matrixRequest struct {
	method, path, body, contentType string
	asks                            []question
	// grants is what a role or binding in the body would give.
	grants *grant
	// succeeds is set if it answers 200 to users who may.
	succeeds bool
	watches  bool
}

func (r matrixRequest) String() string { return r.method + " " + r.path }

// matrixResource is a kind that the matrix asks about.
type matrixResource struct {
	group, version, kind, plural string
	namespaces                   []string // nil of the cluster's
	names                        []string
	subresources                 []string // "verb[,verb] name"
	onlyCreate                   bool     // a review
	absent                       bool     // not served
}

// matrixResources have the objects that the fixture creates.
var matrixResources = []matrixResource{
	{"", "v1", "Pod", "pods", []string{"a", "b"}, []string{"used", "other"}, []string{
		"get,update,patch status", "get log", "create eviction", "create binding", "get,create exec", "get,create portforward", "get,create,update,patch,delete proxy",
		"get,update,patch ephemeralcontainers", "get,update,patch resize",
	}, false, false},
	{"", "v1", "Secret", "secrets", []string{"a", "b"}, []string{"used", "other"}, nil, false, false},
	{"", "v1", "ConfigMap", "configmaps", []string{"a", "b"}, []string{"used", "other"}, nil, false, false},
	{"", "v1", "ServiceAccount", "serviceaccounts", []string{"a", "b"}, []string{"used", "other"}, []string{"create token"}, false, false},
	{"", "v1", "Service", "services", []string{"a"}, []string{"one"}, []string{"get,update,patch status", "get proxy"}, false, false},
	{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", []string{"a", "b"}, []string{"used", "other"}, []string{"get,update,patch status"}, false, false},
	{"", "v1", "ResourceQuota", "resourcequotas", []string{"a"}, []string{"one"}, []string{"get,update,patch status"}, false, false},
	{"", "v1", "Event", "events", []string{"a"}, []string{"one"}, nil, false, false},
	{"events.k8s.io", "v1", "Event", "events", []string{"a"}, []string{"one"}, nil, false, false},
	{"apps", "v1", "Deployment", "deployments", []string{"a", "b"}, []string{"one"}, []string{"get,update,patch status", "get,update,patch scale"}, false, false},
	{"batch", "v1", "Job", "jobs", []string{"a"}, []string{"one"}, []string{"get,update,patch status"}, false, false},
	{"coordination.k8s.io", "v1", "Lease", "leases", []string{"a", "kube-node-lease"}, []string{"n1", "n2"}, nil, false, false},
	{"rbac.authorization.k8s.io", "v1", "Role", "roles", []string{"a", "b"}, []string{"one"}, nil, false, false},
	{"rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", []string{"a", "b"}, []string{"one"}, nil, false, false},
	{"example.com", "v1", "Widget", "widgets", []string{"a", "b"}, []string{"one"}, []string{"get,update,patch status", "get,update,patch scale"}, false, false},
	{"", "v1", "Namespace", "namespaces", nil, []string{"a", "b"}, []string{"get,update,patch status", "update finalize"}, false, false},
	{"", "v1", "Node", "nodes", nil, []string{"n1", "n2"}, []string{"get,update,patch status", "get proxy"}, false, false},
	{"", "v1", "PersistentVolume", "persistentvolumes", nil, []string{"used", "other"}, []string{"get,update,patch status"}, false, false},
	{"rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", nil, []string{"view"}, nil, false, false},
	{"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", nil, []string{"system:discovery"}, nil, false, false},
	{"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", nil, []string{"widgets.example.com"}, []string{"get,update,patch status"}, false, false},
	{"storage.k8s.io", "v1", "StorageClass", "storageclasses", nil, []string{"one"}, nil, false, false},
	{"flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", nil, []string{"exempt"}, []string{"get,update,patch status"}, false, false},
	{"certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", nil, []string{"one"}, []string{"get,update,patch status", "get,update,patch approval"}, false, false},
	{"authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", nil, nil, nil, true, false},
	{"authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", nil, nil, nil, true, false},
	{"authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", []string{"a", "b"}, nil, nil, true, false},
	{"authentication.k8s.io", "v1", "TokenReview", "tokenreviews", nil, nil, nil, true, false},
	{"example.com", "v1", "Nothing", "nothings", []string{"a"}, []string{"one"}, []string{"get status"}, false, true},
}

// matrixPaths are no resources.
var matrixPaths = []string{
	"/", "/api", "/api/v1", "/apis", "/apis/", "/apis/apps", "/apis/apps/v1", "/healthz", "/healthz/ping", "/livez", "/livez/ping", "/readyz", "/version", "/version/", "/metrics",
	"/openapi", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/debug", "/debug/pprof/", "/debug/pprof/cmdline",
	"/debug/api_priority_and_fairness/dump_queues", "/openid/v1/jwks", "/.well-known/openid-configuration", "/logs", "/nothing",
}

// matrixRequests lists the requests that every identity makes.
func matrixRequests() []matrixRequest {
	var all []matrixRequest
	for _, r := range matrixResources {
		namespaces := r.namespaces
		if namespaces == nil {
			namespaces = []string{""}
		} else if !r.onlyCreate {
			all = append(all, r.reads("", "")...)
		}
		for _, namespace := range namespaces {
			all = append(all, r.requests(namespace)...)
		}
	}
	for _, path := range matrixPaths {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			all = append(all, matrixRequest{method: method, path: path, asks: []question{{verb: strings.ToLower(method), path: path}}})
		}
	}
	return append(all, grantRequests()...)
}

func (r matrixResource) ask(verb, subresource, namespace, name string) question {
	if r.plural == "namespaces" {
		namespace = name // a namespace is an object in itself
	}
	return question{verb: verb, group: r.group, resource: r.plural, subresource: subresource, namespace: namespace, name: name}
}

func (r matrixResource) path(namespace, name string) string {
	path := "/apis/" + r.group + "/" + r.version
	if r.group == "" {
		path = "/api/" + r.version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return strings.TrimSuffix(path+"/"+r.plural+"/"+name, "/")
}

// reads are the lists and watches of a namespace, or of all.
func (r matrixResource) reads(namespace, selected string) []matrixRequest {
	query := url.Values{}
	name := ""
	if field, value, ok := strings.Cut(selected, "="); ok {
		query.Set("fieldSelector", selected)
		if field == "metadata.name" {
			name = value
		}
	}
	list := question{verb: "list", group: r.group, resource: r.plural, namespace: namespace, name: name}
	watch := list
	watch.verb = "watch"
	if strings.HasPrefix(selected, "spec.nodeName=") {
		list.selectsNode = strings.TrimPrefix(selected, "spec.nodeName=")
		watch.selectsNode = list.selectsNode
	}
	path := r.path(namespace, "")
	watched := url.Values{"watch": {"true"}, "resourceVersion": {"0"}}
	for key, values := range query {
		watched[key] = values
	}
	requests := []matrixRequest{
		{method: http.MethodGet, path: path + "?" + query.Encode(), asks: []question{list}, succeeds: !r.absent},
		{method: http.MethodGet, path: path + "?" + watched.Encode(), asks: []question{watch}, succeeds: !r.absent, watches: true},
	}
	if selected == "" {
		deprecated := strings.Replace(path, "/"+r.version+"/", "/"+r.version+"/watch/", 1)
		requests = append(requests, matrixRequest{method: http.MethodGet, path: deprecated, asks: []question{watch}, watches: true})
	}
	return requests
}

// requests are all that can be asked in a namespace.
func (r matrixResource) requests(namespace string) []matrixRequest {
	object := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q}}`, strings.TrimPrefix(r.group+"/"+r.version, "/"), r.kind, name)
	}
	collection := r.path(namespace, "")
	all := []matrixRequest{{
		method: http.MethodPost, path: collection, body: object("new"), contentType: "application/json",
		asks: []question{r.ask("create", "", namespace, "")},
	}}
	if r.onlyCreate {
		return all
	}
	all = append(all, r.reads(namespace, "")...)
	all = append(all, r.reads(namespace, "metadata.name="+r.names[0])...)
	if r.plural == "pods" {
		all = append(all, r.reads(namespace, "spec.nodeName=n1")...)
	}
	all = append(all, matrixRequest{method: http.MethodDelete, path: collection, asks: []question{r.ask("deletecollection", "", namespace, "")}})
	for _, name := range r.names {
		path := r.path(namespace, name)
		exists := !r.absent && !(r.plural == "leases" && namespace != "kube-node-lease")
		all = append(all,
			matrixRequest{method: http.MethodGet, path: path, asks: []question{r.ask("get", "", namespace, name)}, succeeds: exists},
			matrixRequest{method: http.MethodHead, path: path, asks: []question{r.ask("get", "", namespace, name)}, succeeds: exists},
			matrixRequest{method: http.MethodPut, path: path, body: object(name), contentType: "application/json", asks: []question{r.ask("update", "", namespace, name)}},
			matrixRequest{method: http.MethodPatch, path: path, body: `{"metadata":{"labels":{"x":"y"}}}`, contentType: "application/merge-patch+json",
				asks: []question{r.ask("patch", "", namespace, name)}},
			matrixRequest{method: http.MethodPatch, path: path + "?fieldManager=m&force=true", body: object(name), contentType: "application/apply-patch+yaml",
				asks: []question{r.ask("patch", "", namespace, name)}},
			matrixRequest{method: http.MethodDelete, path: path, asks: []question{r.ask("delete", "", namespace, name)}},
		)
		for _, sub := range r.subresources {
			verbs, subresource, _ := strings.Cut(sub, " ")
			for verb := range strings.SplitSeq(verbs, ",") {
				all = append(all, r.subresourceRequest(verb, subresource, namespace, name))
			}
		}
	}
	if !r.absent && slices.Contains([]string{"configmaps", "widgets"}, r.plural) {
		// Apply creates what does not exist, and needs the right to.
		all = append(all, matrixRequest{
			method: http.MethodPatch, path: r.path(namespace, "new") + "?fieldManager=m", body: object("new"), contentType: "application/apply-patch+yaml",
			asks: []question{r.ask("patch", "", namespace, "new"), r.ask("create", "", namespace, "new")},
		})
	}
	return all
}

func (r matrixResource) subresourceRequest(verb, subresource, namespace, name string) matrixRequest {
	methods := map[string]string{"get": http.MethodGet, "create": http.MethodPost, "update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete}
	q := matrixRequest{method: methods[verb], path: r.path(namespace, name) + "/" + subresource, asks: []question{r.ask(verb, subresource, namespace, name)}}
	if verb != "get" && verb != "delete" {
		q.body, q.contentType = "{}", "application/json"
	}
	if verb == "patch" {
		q.contentType = "application/merge-patch+json"
	}
	return q
}
