// Package core defines the kinds of the core group: pods, services, nodes,
// namespaces, volumes and their claims, configuration, quotas and events.
package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// Resources returns the kinds of core/v1 and, because events are one store
// under two names, events.k8s.io/v1.
func Resources() []*resource.Resource {
	return slices.Concat(podLike(), services(), cluster(), volumes(), configuration(), events())
}

func podLike() []*resource.Resource {
	gv := corev1.SchemeGroupVersion
	return []*resource.Resource{
		define.Resource[corev1.Pod, corev1.PodList](gv, define.Kind{
			Name: "Pod", Plural: "pods", ShortNames: []string{"po"}, Categories: define.InAll, Status: true, StatusKeeps: resource.MetadataOwnerReferences, ReturnDeleted: true,
			Fields: slices.Concat(define.Final("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
				define.Fields("status.phase", "status.podIP", "status.nominatedNodeName"), []resource.Field{define.SelectableOr("spec.hostNetwork", "false")}),
			FieldLabels: resource.FieldLabels{Aliases: map[string]string{"spec.host": "spec.nodeName"}, Empty: []string{"status.podIPs"}},
		}, podRules()),
		define.Resource[corev1.ReplicationController, corev1.ReplicationControllerList](gv, define.Kind{
			Name: "ReplicationController", Plural: "replicationcontrollers", NameRule: validate.AnyName, ShortNames: []string{"rc"}, Categories: define.InAll,
			Path: "controllers", Status: true, Scale: replicationControllerScale(), OrphanByDefault: true,
			Fields: []resource.Field{define.SelectableOr("status.replicas", "0")},
		}, replicationControllerRules()),
		define.Resource[corev1.PodTemplate, corev1.PodTemplateList](gv, define.Kind{
			Name: "PodTemplate", Plural: "podtemplates", NameRuleForNew: true, ReturnDeleted: true,
		}, podTemplateRules()),
	}
}

func services() []*resource.Resource {
	gv := corev1.SchemeGroupVersion
	return []*resource.Resource{
		define.Resource[corev1.Service, corev1.ServiceList](gv, define.Kind{
			Name: "Service", Plural: "services", NameRuleForNew: true, NameRule: apivalidation.NameIsDNSLabel, ShortNames: []string{"svc"}, Categories: define.InAll,
			Path: "services/specs", Status: true, NoGeneration: true, UpsertOnUpdate: true, ReturnDeleted: true,
			Fields: define.Fields("spec.clusterIP", "spec.type"),
		}, serviceRules()),
		define.Resource[corev1.Endpoints, corev1.EndpointsList](gv, define.Kind{
			Name: "Endpoints", Plural: "endpoints", ShortNames: []string{"ep"},
			Path: "services/endpoints", NoGeneration: true, UpsertOnUpdate: true,
			Deprecation: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
		}, endpointsRules()),
		define.Resource[corev1.ServiceAccount, corev1.ServiceAccountList](gv, define.Kind{
			Name: "ServiceAccount", Plural: "serviceaccounts", ShortNames: []string{"sa"}, NoGeneration: true, ReturnDeleted: true,
		}, serviceAccountRules()),
	}
}

func cluster() []*resource.Resource {
	gv := corev1.SchemeGroupVersion
	return []*resource.Resource{
		define.Resource[corev1.Node, corev1.NodeList](gv, define.Kind{
			Name: "Node", Plural: "nodes", NamesBeforeFinalizers: true, ShortNames: []string{"no"}, Cluster: true, Path: "minions", Status: true, NoGeneration: true, CreateWithStatus: true,
			Fields: []resource.Field{define.SelectableOr("spec.unschedulable", "false")},
		}, nodeRules()),
		define.Resource[corev1.Namespace, corev1.NamespaceList](gv, define.Kind{
			Name: "Namespace", Plural: "namespaces", NamesBeforeFinalizers: true, NameRule: apivalidation.NameIsDNSLabel, ShortNames: []string{"ns"}, Cluster: true, Status: true, NoGeneration: true, MarkedByTime: true, ReturnDeleted: true,
			PreconditionFailed: "Precondition failed",
			Fields:             define.Fields("status.phase"),
			Verbs:              []string{"create", "delete", "get", "list", "patch", "update", "watch"}, // not all at once
		}, namespaceRules()),
		define.Resource[corev1.ResourceQuota, corev1.ResourceQuotaList](gv, define.Kind{
			Name: "ResourceQuota", Plural: "resourcequotas", NameRuleForNew: true, ShortNames: []string{"quota"}, Status: true, NoGeneration: true, ReturnDeleted: true,
		}, resourceQuotaRules()),
		define.Resource[corev1.LimitRange, corev1.LimitRangeList](gv, define.Kind{
			Name: "LimitRange", Plural: "limitranges", NamesBeforeFinalizers: true, ShortNames: []string{"limits"}, NoGeneration: true, UpsertOnUpdate: true, NamesUnnamed: true,
		}, limitRangeRules()),
	}
}

func volumes() []*resource.Resource {
	gv := corev1.SchemeGroupVersion
	return []*resource.Resource{
		define.Resource[corev1.PersistentVolume, corev1.PersistentVolumeList](gv, define.Kind{
			Name: "PersistentVolume", Plural: "persistentvolumes", NamesBeforeFinalizers: true, ShortNames: []string{"pv"}, Cluster: true, Status: true, NoGeneration: true, ReturnDeleted: true,
		}, persistentVolumeRules()),
		define.Resource[corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaimList](gv, define.Kind{
			Name: "PersistentVolumeClaim", Plural: "persistentvolumeclaims", ShortNames: []string{"pvc"}, Status: true, NoGeneration: true, ReturnDeleted: true,
		}, persistentVolumeClaimRules()),
	}
}

func configuration() []*resource.Resource {
	gv := corev1.SchemeGroupVersion
	return []*resource.Resource{
		define.Resource[corev1.ConfigMap, corev1.ConfigMapList](gv, define.Kind{
			Name: "ConfigMap", Plural: "configmaps", ShortNames: []string{"cm"}, NoGeneration: true,
		}, configMapRules()),
		define.Resource[corev1.Secret, corev1.SecretList](gv, define.Kind{
			Name: "Secret", Plural: "secrets", NoGeneration: true, Fields: define.Fields("type"),
		}, secretRules()),
	}
}

func serviceAccountRules() define.Rules[*corev1.ServiceAccount] {
	// Secrets are those of the account's namespace.
	keepNames := func(a *corev1.ServiceAccount) {
		for i := range a.Secrets {
			a.Secrets[i] = corev1.ObjectReference{Name: a.Secrets[i].Name}
		}
	}
	return define.Rules[*corev1.ServiceAccount]{
		PrepareForCreate: keepNames,
		PrepareForUpdate: func(a, _ *corev1.ServiceAccount) { keepNames(a) },
		Warnings: func(a, old *corev1.ServiceAccount) []string {
			const key = "kubernetes.io/enforce-mountable-secrets"
			if old != nil && metav1.HasAnnotation(old.ObjectMeta, key) {
				return nil
			}
			return annotationWarning(&a.ObjectMeta, key, "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets")
		},
	}
}
