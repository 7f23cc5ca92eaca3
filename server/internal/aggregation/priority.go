package aggregation

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Priority is where an APIService puts its group among the others, and its version within the
// group: the higher comes first.
type Priority struct{ Group, Version int32 }

var (
	// CustomPriority is that of custom resources: after Kubernetes' own groups, and all alike, so
	// that groups go by name and versions by what they are called.
	CustomPriority = Priority{Group: 1000, Version: 100}
	// UnknownPriority is that of a version of Kubernetes that BuiltinPriority does not know.
	UnknownPriority = Priority{Group: 1000, Version: 15}
)

// BuiltinPriority returns the priority that kube-apiserver gives to a version that it has itself.
func BuiltinPriority(gv schema.GroupVersion) (Priority, bool) {
	for _, g := range builtinPriorities {
		if version, ok := g.versions[gv.Version]; ok && g.group == gv.Group {
			return Priority{g.priority, version}, true
		}
	}
	return Priority{}, false
}

type versions map[string]int32

// builtinPriorities are kube-apiserver's. The group of the APIServices themselves comes before
// all that an APIService can ask for.
var builtinPriorities = []struct {
	group    string
	priority int32
	versions versions
}{
	{apiregistrationv1.GroupName, 20001, versions{"v1": 0}},
	{"", 18000, versions{"v1": 1}},
	{"apps", 17800, versions{"v1": 15}},
	{"events.k8s.io", 17750, versions{"v1": 15, "v1beta1": 5}},
	{"authentication.k8s.io", 17700, versions{"v1": 15, "v1beta1": 9, "v1alpha1": 1}},
	{"authorization.k8s.io", 17600, versions{"v1": 15}},
	{"autoscaling", 17500, versions{"v1": 15, "v2": 30, "v2beta1": 9, "v2beta2": 1}},
	{"batch", 17400, versions{"v1": 15, "v1beta1": 9, "v2alpha1": 9}},
	{"certificates.k8s.io", 17300, versions{"v1": 15, "v1beta1": 9, "v1alpha1": 1}},
	{"networking.k8s.io", 17200, versions{"v1": 15, "v1beta1": 9}},
	{"policy", 17100, versions{"v1": 15, "v1beta1": 9}},
	{"rbac.authorization.k8s.io", 17000, versions{"v1": 15}},
	{"storage.k8s.io", 16800, versions{"v1": 15, "v1beta1": 9, "v1alpha1": 1}},
	{"admissionregistration.k8s.io", 16700, versions{"v1": 15, "v1beta1": 12, "v1alpha1": 9}},
	{"apiextensions.k8s.io", 16700, versions{"v1": 15}},
	{"scheduling.k8s.io", 16600, versions{"v1": 15, "v1beta1": 9, "v1alpha3": 3}},
	{"coordination.k8s.io", 16500, versions{"v1": 15, "v1beta1": 13, "v1alpha2": 12}},
	{"node.k8s.io", 16300, versions{"v1": 15, "v1beta1": 9, "v1alpha1": 1}},
	{"discovery.k8s.io", 16200, versions{"v1": 15, "v1beta1": 12}},
	{"resource.k8s.io", 16200, versions{"v1": 21, "v1beta2": 15, "v1beta1": 9, "v1alpha3": 1}},
	{"flowcontrol.apiserver.k8s.io", 16100, versions{"v1": 21, "v1beta3": 18, "v1beta2": 15, "v1beta1": 12, "v1alpha1": 9}},
	{"internal.apiserver.k8s.io", 16000, versions{"v1alpha1": 9}},
	{"storagemigration.k8s.io", 15800, versions{"v1": 15, "v1beta1": 9}},
	{"lifecycle.k8s.io", 15700, versions{"v1alpha1": 1}},
}
