package quota

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const countPrefix = "count/"

// aliases are the names by which the objects of a resource were limited before
// count/ was.
var aliases = map[schema.GroupResource]corev1.ResourceName{
	{Resource: "configmaps"}:             corev1.ResourceConfigMaps,
	{Resource: "secrets"}:                corev1.ResourceSecrets,
	{Resource: "replicationcontrollers"}: corev1.ResourceReplicationControllers,
	{Resource: "resourcequotas"}:         corev1.ResourceQuotas,
}

// CountName returns the name by which a quota limits the number of a resource's
// objects, such as count/deployments.apps.
func CountName(resource schema.GroupResource) corev1.ResourceName {
	return corev1.ResourceName(countPrefix + resource.String())
}

// Resources returns the resources of which some objects use the named amount: one at
// most for count/ and the names that stand for a count.
func Resources(name corev1.ResourceName) []schema.GroupResource {
	if counted, ok := strings.CutPrefix(string(name), countPrefix); ok {
		return []schema.GroupResource{schema.ParseGroupResource(counted)}
	}
	for counted, alias := range aliases {
		if alias == name {
			return []schema.GroupResource{counted}
		}
	}
	var found []schema.GroupResource
	for plural, k := range map[string]kind{"pods": podKind{}, "services": serviceKind{}, "persistentvolumeclaims": claimKind{}} {
		if k.tracks(name) {
			found = append(found, schema.GroupResource{Resource: plural})
		}
	}
	if (deviceKind{}).tracks(name) {
		found = append(found, DeviceClaims)
	}
	return found
}

// countedKind is a resource of which only the number of objects is limited.
type countedKind struct{ name, alias corev1.ResourceName }

func (c countedKind) tracks(name corev1.ResourceName) bool {
	return name == c.name || c.alias != "" && name == c.alias
}

func (c countedKind) usage(any, time.Time) corev1.ResourceList {
	used := corev1.ResourceList{c.name: one()}
	if c.alias != "" {
		used[c.alias] = one()
	}
	return used
}

// inScope: no scope is about objects that are only counted.
func (c countedKind) inScope(any, corev1.ScopedResourceSelectorRequirement) bool { return false }

func (c countedKind) missing(any, []corev1.ResourceName) error { return nil }

func one() resource.Quantity { return count(1) }

func count(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }
