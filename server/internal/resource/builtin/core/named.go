package core

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// named finds containers by their names: the first one of a name. A pod may have ten thousands, and as many statuses that
// name them.
type named struct {
	list   []corev1.Container
	byName map[string]*corev1.Container // if there are many
}

// fewContainers are searched as fast as they are looked up.
const fewContainers = 16

// get returns the container with a name, or nil.
func (n *named) get(name string) *corev1.Container {
	if len(n.list) <= fewContainers {
		for i := range n.list {
			if n.list[i].Name == name {
				return &n.list[i]
			}
		}
		return nil
	}
	if n.byName == nil {
		n.byName = make(map[string]*corev1.Container, len(n.list))
		for i := range n.list {
			if c := &n.list[i]; n.byName[c.Name] == nil {
				n.byName[c.Name] = c
			}
		}
	}
	return n.byName[name]
}

// allocatable knows which claims can be allocated to containers, each made of its lists when it is first asked for.
type allocatable struct {
	claims   map[*corev1.Container]sets.Set[string]
	mappings map[string][]*corev1.ContainerExtendedResourceRequest // by the container's name
}

// to returns the claims of a container, and the requests of them that it uses, as an allocated resource names them: its own,
// and those of the claim that stands for the extended resources that it requests.
func (a *allocatable) to(container *corev1.Container, extended *corev1.PodExtendedResourceClaimStatus) sets.Set[string] {
	if found, ok := a.claims[container]; ok {
		return found
	}
	found := sets.New[string]()
	for i := range container.Resources.Claims {
		if own := &container.Resources.Claims[i]; own.Request == "" {
			found.Insert(own.Name)
		} else {
			found.Insert(own.Name + "/" + own.Request)
		}
	}
	for _, m := range a.mappingsOf(container.Name, extended) {
		if amount := container.Resources.Requests[corev1.ResourceName(m.ResourceName)]; !amount.IsZero() && m.RequestName != "" {
			found.Insert(extended.ResourceClaimName + "/" + m.RequestName)
		}
	}
	if a.claims == nil {
		a.claims = map[*corev1.Container]sets.Set[string]{}
	}
	a.claims[container] = found
	return found
}

func (a *allocatable) mappingsOf(container string, extended *corev1.PodExtendedResourceClaimStatus) []*corev1.ContainerExtendedResourceRequest {
	if extended == nil || extended.ResourceClaimName == "" || strings.Contains(extended.ResourceClaimName, "/") {
		return nil // an allocated resource cannot name it
	}
	if a.mappings == nil {
		a.mappings = map[string][]*corev1.ContainerExtendedResourceRequest{}
		for i := range extended.RequestMappings {
			m := &extended.RequestMappings[i]
			a.mappings[m.ContainerName] = append(a.mappings[m.ContainerName], m)
		}
	}
	return a.mappings[container]
}
