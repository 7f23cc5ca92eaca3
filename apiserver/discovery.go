package apiserver

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/resource"
)

// subresource is one entry of discovery below a resource.
type subresource struct {
	name  string
	kind  schema.GroupVersionKind // of the bodies, if not the resource's own
	verbs []string
}

var readWrite = []string{verbGet, verbPatch, verbUpdate}

// subresourcesOf lists what is served below a resource, by name.
func subresourcesOf(res *resource.Resource) []subresource {
	var list []subresource
	if res.Status {
		list = append(list, subresource{"status", res.GroupVersionKind(), readWrite})
	}
	if res.Scale != nil {
		list = append(list, subresource{"scale", scaleKind, readWrite})
	}
	switch (schema.GroupVersionResource{Group: res.Group, Version: res.Version, Resource: res.Plural}) {
	case coreResource("pods"):
		list = append(list,
			subresource{"binding", coreKind("Binding"), []string{verbCreate}},
			subresource{"ephemeralcontainers", coreKind("Pod"), readWrite},
			subresource{"eviction", schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}, []string{verbCreate}},
			subresource{"resize", coreKind("Pod"), readWrite})
	case coreResource("namespaces"):
		list = append(list, subresource{"finalize", coreKind("Namespace"), []string{verbUpdate}})
	}
	slices.SortFunc(list, func(a, b subresource) int { return strings.Compare(a.name, b.name) })
	return list
}

func coreResource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: plural}
}

func coreKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: kind}
}

// apiResources is the plain discovery of one group and version: resources and
// their subresources.
func apiResources(resources []*resource.Resource) []metav1.APIResource {
	list := make([]metav1.APIResource, 0, 2*len(resources))
	for _, res := range resources {
		list = append(list, metav1.APIResource{
			Name: res.Plural, SingularName: res.Singular, Namespaced: res.Namespaced, Kind: res.Kind,
			Verbs: verbsOf(res), ShortNames: res.ShortNames, Categories: res.Categories,
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

// apiGroup is the plain discovery of one group.
func apiGroup(name string, versions []string) metav1.APIGroup {
	group := metav1.APIGroup{Name: name}
	for _, v := range versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: schema.GroupVersion{Group: name, Version: v}.String(), Version: v,
		})
	}
	group.PreferredVersion = group.Versions[0]
	return group
}
