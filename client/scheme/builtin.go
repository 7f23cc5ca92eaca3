package scheme

import (
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiPackage is a Go package whose types are kinds of one group and version, each
// named as its type. A type that is in neither list has no resource of its own.
type apiPackage struct {
	path                string
	group, version      string
	namespaced, cluster string // kinds with a resource, by scope
}

// builtinPackages are the packages of Kubernetes. A test holds the table against
// the sources of k8s.io/api and against client-go's scheme.
var builtinPackages = []apiPackage{
	{"k8s.io/api/admission/v1", "admission.k8s.io", "v1", "", ""},
	{"k8s.io/api/admission/v1beta1", "admission.k8s.io", "v1beta1", "", ""},
	{"k8s.io/api/admissionregistration/v1", "admissionregistration.k8s.io", "v1", "",
		"MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"},
	{"k8s.io/api/admissionregistration/v1alpha1", "admissionregistration.k8s.io", "v1alpha1", "",
		"MutatingAdmissionPolicy MutatingAdmissionPolicyBinding ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"},
	{"k8s.io/api/admissionregistration/v1beta1", "admissionregistration.k8s.io", "v1beta1", "",
		"MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"},
	{"k8s.io/api/apidiscovery/v2", "apidiscovery.k8s.io", "v2", "", ""},
	{"k8s.io/api/apidiscovery/v2beta1", "apidiscovery.k8s.io", "v2beta1", "", ""},
	{"k8s.io/api/apiserverinternal/v1alpha1", "internal.apiserver.k8s.io", "v1alpha1", "", "StorageVersion"},
	{"k8s.io/api/apps/v1", "apps", "v1", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet", ""},
	{"k8s.io/api/apps/v1beta1", "apps", "v1beta1", "ControllerRevision Deployment StatefulSet", ""},
	{"k8s.io/api/apps/v1beta2", "apps", "v1beta2", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet", ""},
	{"k8s.io/api/authentication/v1", "authentication.k8s.io", "v1", "", "SelfSubjectReview TokenReview"},
	{"k8s.io/api/authentication/v1alpha1", "authentication.k8s.io", "v1alpha1", "", "SelfSubjectReview"},
	{"k8s.io/api/authentication/v1beta1", "authentication.k8s.io", "v1beta1", "", "SelfSubjectReview TokenReview"},
	{"k8s.io/api/authorization/v1", "authorization.k8s.io", "v1", "LocalSubjectAccessReview",
		"SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"},
	{"k8s.io/api/authorization/v1beta1", "authorization.k8s.io", "v1beta1", "LocalSubjectAccessReview",
		"SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"},
	{"k8s.io/api/autoscaling/v1", "autoscaling", "v1", "HorizontalPodAutoscaler", ""},
	{"k8s.io/api/autoscaling/v2", "autoscaling", "v2", "HorizontalPodAutoscaler", ""},
	{"k8s.io/api/batch/v1", "batch", "v1", "CronJob Job", ""},
	{"k8s.io/api/batch/v1beta1", "batch", "v1beta1", "CronJob", ""},
	{"k8s.io/api/certificates/v1", "certificates.k8s.io", "v1", "PodCertificateRequest", "CertificateSigningRequest ClusterTrustBundle"},
	{"k8s.io/api/certificates/v1alpha1", "certificates.k8s.io", "v1alpha1", "", "ClusterTrustBundle"},
	{"k8s.io/api/certificates/v1beta1", "certificates.k8s.io", "v1beta1", "PodCertificateRequest", "CertificateSigningRequest ClusterTrustBundle"},
	{"k8s.io/api/coordination/v1", "coordination.k8s.io", "v1", "Lease", ""},
	{"k8s.io/api/coordination/v1alpha2", "coordination.k8s.io", "v1alpha2", "LeaseCandidate", ""},
	{"k8s.io/api/coordination/v1beta1", "coordination.k8s.io", "v1beta1", "Lease LeaseCandidate", ""},
	{"k8s.io/api/core/v1", "", "v1",
		"ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount",
		"ComponentStatus Namespace Node PersistentVolume"},
	{"k8s.io/api/discovery/v1", "discovery.k8s.io", "v1", "EndpointSlice", ""},
	{"k8s.io/api/discovery/v1beta1", "discovery.k8s.io", "v1beta1", "EndpointSlice", ""},
	{"k8s.io/api/events/v1", "events.k8s.io", "v1", "Event", ""},
	{"k8s.io/api/events/v1beta1", "events.k8s.io", "v1beta1", "Event", ""},
	{"k8s.io/api/extensions/v1beta1", "extensions", "v1beta1", "DaemonSet Deployment Ingress NetworkPolicy ReplicaSet", ""},
	{"k8s.io/api/flowcontrol/v1", "flowcontrol.apiserver.k8s.io", "v1", "", "FlowSchema PriorityLevelConfiguration"},
	{"k8s.io/api/flowcontrol/v1beta1", "flowcontrol.apiserver.k8s.io", "v1beta1", "", "FlowSchema PriorityLevelConfiguration"},
	{"k8s.io/api/flowcontrol/v1beta2", "flowcontrol.apiserver.k8s.io", "v1beta2", "", "FlowSchema PriorityLevelConfiguration"},
	{"k8s.io/api/flowcontrol/v1beta3", "flowcontrol.apiserver.k8s.io", "v1beta3", "", "FlowSchema PriorityLevelConfiguration"},
	{"k8s.io/api/imagepolicy/v1alpha1", "imagepolicy.k8s.io", "v1alpha1", "", ""},
	{"k8s.io/api/lifecycle/v1alpha1", "lifecycle.k8s.io", "v1alpha1", "Eviction EvictionRequest", ""},
	{"k8s.io/api/networking/v1", "networking.k8s.io", "v1", "Ingress NetworkPolicy", "IPAddress IngressClass ServiceCIDR"},
	{"k8s.io/api/networking/v1beta1", "networking.k8s.io", "v1beta1", "Ingress", "IPAddress IngressClass ServiceCIDR"},
	{"k8s.io/api/node/v1", "node.k8s.io", "v1", "", "RuntimeClass"},
	{"k8s.io/api/node/v1alpha1", "node.k8s.io", "v1alpha1", "", "RuntimeClass"},
	{"k8s.io/api/node/v1beta1", "node.k8s.io", "v1beta1", "", "RuntimeClass"},
	{"k8s.io/api/policy/v1", "policy", "v1", "PodDisruptionBudget", ""},
	{"k8s.io/api/policy/v1beta1", "policy", "v1beta1", "PodDisruptionBudget", ""},
	{"k8s.io/api/rbac/v1", "rbac.authorization.k8s.io", "v1", "Role RoleBinding", "ClusterRole ClusterRoleBinding"},
	{"k8s.io/api/rbac/v1alpha1", "rbac.authorization.k8s.io", "v1alpha1", "Role RoleBinding", "ClusterRole ClusterRoleBinding"},
	{"k8s.io/api/rbac/v1beta1", "rbac.authorization.k8s.io", "v1beta1", "Role RoleBinding", "ClusterRole ClusterRoleBinding"},
	{"k8s.io/api/resource/v1", "resource.k8s.io", "v1", "ResourceClaim ResourceClaimTemplate", "DeviceClass DeviceTaintRule ResourceSlice"},
	{"k8s.io/api/resource/v1alpha3", "resource.k8s.io", "v1alpha3", "", "DeviceTaintRule ResourcePoolStatusRequest"},
	{"k8s.io/api/resource/v1beta1", "resource.k8s.io", "v1beta1", "ResourceClaim ResourceClaimTemplate", "DeviceClass ResourceSlice"},
	{"k8s.io/api/resource/v1beta2", "resource.k8s.io", "v1beta2", "ResourceClaim ResourceClaimTemplate", "DeviceClass DeviceTaintRule ResourceSlice"},
	{"k8s.io/api/scheduling/v1", "scheduling.k8s.io", "v1", "", "PriorityClass"},
	{"k8s.io/api/scheduling/v1alpha3", "scheduling.k8s.io", "v1alpha3", "CompositePodGroup PodGroup Workload", ""},
	{"k8s.io/api/scheduling/v1beta1", "scheduling.k8s.io", "v1beta1", "PodGroup Workload", "PriorityClass"},
	{"k8s.io/api/storage/v1", "storage.k8s.io", "v1", "CSIStorageCapacity", "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass"},
	{"k8s.io/api/storage/v1alpha1", "storage.k8s.io", "v1alpha1", "CSIStorageCapacity", "VolumeAttachment VolumeAttributesClass"},
	{"k8s.io/api/storage/v1beta1", "storage.k8s.io", "v1beta1", "CSIStorageCapacity", "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass"},
	{"k8s.io/api/storagemigration/v1", "storagemigration.k8s.io", "v1", "", "StorageVersionMigration"},
	{"k8s.io/api/storagemigration/v1beta1", "storagemigration.k8s.io", "v1beta1", "", "StorageVersionMigration"},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", "apiextensions.k8s.io", "v1", "", "CustomResourceDefinition"},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1", "apiextensions.k8s.io", "v1beta1", "", "CustomResourceDefinition"},
	{"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1", "apiregistration.k8s.io", "v1", "", "APIService"},
	{"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1beta1", "apiregistration.k8s.io", "v1beta1", "", "APIService"},
	{"k8s.io/metrics/pkg/apis/metrics/v1beta1", "metrics.k8s.io", "v1beta1", "PodMetrics", "NodeMetrics"},
}

// irregular are the resources whose name is not the plural of the kind.
var irregular = map[schema.GroupKind]string{
	{Group: "metrics.k8s.io", Kind: "PodMetrics"}:  "pods",
	{Group: "metrics.k8s.io", Kind: "NodeMetrics"}: "nodes",
}

// mapping returns the mapping of a kind of the package.
func (p apiPackage) mapping(kind string, scope Scope) Mapping {
	m := Mapping{Kind: schema.GroupVersionKind{Group: p.group, Version: p.version, Kind: kind}, Scope: scope}
	if scope == "" {
		return m
	}
	m.Unnamed = strings.HasSuffix(kind, "Review")
	var ok bool
	if m.Resource, ok = irregular[m.Kind.GroupKind()]; !ok {
		m.Resource = pluralOf(m.Kind)
	}
	return m
}

// index finds the kinds of builtinPackages. It is made at the first use and
// constant after that.
type index struct {
	packages map[string]apiPackage // by path
	kinds    map[schema.GroupVersionKind]Mapping
	plurals  map[schema.GroupVersionResource]Mapping
}

var builtinIndex = sync.OnceValue(func() index {
	x := index{
		packages: map[string]apiPackage{},
		kinds:    map[schema.GroupVersionKind]Mapping{},
		plurals:  map[schema.GroupVersionResource]Mapping{},
	}
	for _, p := range builtinPackages {
		x.packages[p.path] = p
		for scope, kinds := range map[Scope]string{Namespaced: p.namespaced, Cluster: p.cluster} {
			for _, kind := range strings.Fields(kinds) {
				m := p.mapping(kind, scope)
				x.kinds[m.Kind], x.plurals[m.GroupVersionResource()] = m, m
			}
		}
	}
	return x
})

// builtinType returns what a pointer to a type of Kubernetes is. The caller knows
// that it is an object: other types of the packages are not told apart.
func builtinType(typ reflect.Type) (Mapping, bool) {
	if typ.Kind() != reflect.Pointer {
		return Mapping{}, false
	}
	x := builtinIndex()
	p, ok := x.packages[typ.Elem().PkgPath()]
	if !ok {
		return Mapping{}, false
	}
	m := p.mapping(typ.Elem().Name(), "")
	if full, ok := x.kinds[m.Kind]; ok {
		return full, true
	}
	return m, true
}

// IsBuiltin returns whether a pointer type is one that every scheme knows. Servers
// send and accept such types in protobuf, too.
func IsBuiltin(typ reflect.Type) bool {
	_, ok := builtinType(typ)
	return ok
}
