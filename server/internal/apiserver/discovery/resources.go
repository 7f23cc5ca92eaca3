package discovery

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// Kinds of the bodies of subresources that are not of the resource's own kind.
var (
	ScaleKind        = autoscalingv1.SchemeGroupVersion.WithKind("Scale")
	BindingKind      = corev1.SchemeGroupVersion.WithKind("Binding")
	EvictionKind     = policyv1.SchemeGroupVersion.WithKind("Eviction")
	TokenRequestKind = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")
)

// subresource is one entry of discovery below a resource.
type subresource struct {
	name  string
	kind  schema.GroupVersionKind // of the bodies
	body  any                     // an empty one, if they are not the resource's own
	verbs []string
}

var readWrite = []string{request.VerbGet, request.VerbPatch, request.VerbUpdate}

// subresourcesOf lists what is served below a resource, by name as kube-apiserver does. What the
// kubelets of real nodes would answer (pods/log, pods/exec, nodes/proxy) is
// refused here, and so not offered.
func subresourcesOf(res *resource.Resource) []subresource {
	own := func(name string, verbs ...string) subresource {
		return subresource{name: name, kind: res.GroupVersionKind(), verbs: verbs}
	}
	var list []subresource
	if res.Status {
		list = append(list, own("status", readWrite...))
	}
	if res.Scale != nil {
		list = append(list, subresource{"scale", ScaleKind, &autoscalingv1.Scale{}, readWrite})
	}
	switch res.GroupVersionResource() {
	case coreResource("pods"):
		list = append(list,
			subresource{"binding", BindingKind, &corev1.Binding{}, []string{request.VerbCreate}},
			own("ephemeralcontainers", readWrite...),
			subresource{"eviction", EvictionKind, &policyv1.Eviction{}, []string{request.VerbCreate}},
			own("resize", readWrite...))
	case coreResource("namespaces"):
		list = append(list, own("finalize", request.VerbUpdate))
	case coreResource("serviceaccounts"):
		list = append(list, subresource{"token", TokenRequestKind, &authenticationv1.TokenRequest{}, []string{request.VerbCreate}})
	case certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"):
		list = append(list, own("approval", readWrite...))
	}
	if !res.Stored().Mixed { // of custom resources Kubernetes lists the status first
		slices.SortFunc(list, func(a, b subresource) int { return strings.Compare(a.name, b.name) })
	}
	return list
}

// HasSubresource reports whether something is served below the objects of a resource, with whatever
// verbs.
func HasSubresource(res *resource.Resource, name string) bool {
	return slices.ContainsFunc(subresourcesOf(res), func(s subresource) bool { return s.name == name })
}

func coreResource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: plural}
}

// apiResources is the plain discovery of one group and version: resources and
// their subresources.
func apiResources(resources []*resource.Resource) []metav1.APIResource {
	list := make([]metav1.APIResource, 0, 2*len(resources))
	for _, res := range resources {
		list = append(list, metav1.APIResource{
			Name: res.Plural, SingularName: res.Singular, Namespaced: res.Namespaced, Kind: res.Kind,
			Verbs: request.VerbsOf(res), ShortNames: res.ShortNames, Categories: res.Categories,
			StorageVersionHash: storageVersionHash(res.Stored()),
		})
		for _, sub := range subresourcesOf(res) {
			entry := metav1.APIResource{
				Name: res.Plural + "/" + sub.name, Namespaced: res.Namespaced, Kind: sub.kind.Kind, Verbs: sub.verbs,
			}
			if sub.kind.GroupVersion() != res.GroupVersion() {
				entry.Group, entry.Version = sub.kind.Group, sub.kind.Version
			}
			list = append(list, entry)
		}
	}
	return list
}

// storageVersionHash identifies the version in which objects are stored, so that programs
// that migrate stored objects see when it changes. It is computed as kube-apiserver does: of
// the group, the version and the kind. It is empty for what is not stored.
func storageVersionHash(stored *resource.Resource) string {
	if stored.StorePrefix == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(stored.Group + "/" + stored.Version + "/" + stored.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// apiGroup is the plain discovery of one group.
func apiGroup(g *group) metav1.APIGroup {
	plain := metav1.APIGroup{Name: g.name}
	for _, v := range g.versions {
		plain.Versions = append(plain.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: v.String(), Version: v.Version,
		})
	}
	plain.PreferredVersion = plain.Versions[0]
	return plain
}
