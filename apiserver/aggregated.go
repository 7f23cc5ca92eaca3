package apiserver

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/resource"
)

// aggregatedType is both what clients accept and, to the letter, what they
// must be told: KEP-3352.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// wantsAggregated says whether v2 is among the alternatives that a client
// accepts, and preferred to plain JSON. Clients that know only v2beta1 get the
// plain form.
func wantsAggregated(clauses []clause) bool {
	for _, c := range clauses {
		if c.kind != mediaNames[mediaJSON] {
			continue
		}
		switch c.params["as"] {
		case "APIGroupDiscoveryList":
			if c.params["g"] == "apidiscovery.k8s.io" && c.params["v"] == "v2" {
				return true
			}
		case "":
			return false
		}
	}
	return false
}

// aggregatedList is the discovery of several groups in one document.
func aggregatedList(groups []apidiscoveryv2.APIGroupDiscovery) *apidiscoveryv2.APIGroupDiscoveryList {
	return &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items:    groups,
	}
}

func aggregatedResources(resources []*resource.Resource) []apidiscoveryv2.APIResourceDiscovery {
	list := make([]apidiscoveryv2.APIResourceDiscovery, 0, len(resources))
	for _, res := range resources {
		entry := apidiscoveryv2.APIResourceDiscovery{
			Resource: res.Plural, ResponseKind: metaKind(res.GroupVersionKind()), Scope: apidiscoveryv2.ScopeCluster,
			SingularResource: res.Singular, Verbs: verbsOf(res), ShortNames: res.ShortNames, Categories: res.Categories,
		}
		if res.Namespaced {
			entry.Scope = apidiscoveryv2.ScopeNamespace
		}
		for _, sub := range subresourcesOf(res) {
			entry.Subresources = append(entry.Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: sub.name, ResponseKind: metaKind(sub.kind), Verbs: sub.verbs,
			})
		}
		list = append(list, entry)
	}
	return list
}

func metaKind(gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}
