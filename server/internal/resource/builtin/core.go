package builtin

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// inAll is the category that kubectl get all shows.
var inAll = []string{"all"}

// eventTTL is how long events are kept, Kubernetes' default.
const eventTTL = time.Hour

// coreResources are the kinds of core/v1 and, because events are one store
// under two names, events.k8s.io/v1.
func coreResources() []*resource.Resource {
	return slices.Concat(podLike(), services(), cluster(), volumes(), configuration(), events())
}

func podLike() []*resource.Resource {
	gv := corev1.SchemeGroupVersion
	return []*resource.Resource{
		define[corev1.Pod, corev1.PodList](gv, kind{
			Name: "Pod", Plural: "pods", ShortNames: []string{"po"}, Categories: inAll, Status: true, ReturnDeleted: true,
			Fields: slices.Concat(final("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
				fields("status.phase", "status.podIP", "status.nominatedNodeName"), []resource.Field{selectableOr("spec.hostNetwork", "false")}),
		}, podRules()),
		define[corev1.ReplicationController, corev1.ReplicationControllerList](gv, kind{
			Name: "ReplicationController", Plural: "replicationcontrollers", ShortNames: []string{"rc"}, Categories: inAll,
			Path: "controllers", Status: true, Scale: replicationControllerScale(), OrphanByDefault: true,
			Fields: []resource.Field{selectableOr("status.replicas", "0")},
		}, replicationControllerRules()),
		define[corev1.PodTemplate, corev1.PodTemplateList](gv, kind{
			Name: "PodTemplate", Plural: "podtemplates", ReturnDeleted: true,
		}, podTemplateRules()),
	}
}

func services() []*resource.Resource {
	gv := corev1.SchemeGroupVersion
	return []*resource.Resource{
		define[corev1.Service, corev1.ServiceList](gv, kind{
			Name: "Service", Plural: "services", NameRule: apivalidation.NameIsDNS1035Label, ShortNames: []string{"svc"}, Categories: inAll,
			Path: "services/specs", Status: true, NoGeneration: true, UpsertOnUpdate: true, ReturnDeleted: true,
			Fields: fields("spec.clusterIP", "spec.type"),
		}, serviceRules()),
		define[corev1.Endpoints, corev1.EndpointsList](gv, kind{
			Name: "Endpoints", Plural: "endpoints", ShortNames: []string{"ep"},
			Path: "services/endpoints", NoGeneration: true, UpsertOnUpdate: true,
		}, endpointsRules()),
		define[corev1.ServiceAccount, corev1.ServiceAccountList](gv, kind{
			Name: "ServiceAccount", Plural: "serviceaccounts", ShortNames: []string{"sa"}, NoGeneration: true, ReturnDeleted: true,
		}, serviceAccountRules()),
	}
}

func cluster() []*resource.Resource {
	gv := corev1.SchemeGroupVersion
	return []*resource.Resource{
		define[corev1.Node, corev1.NodeList](gv, kind{
			Name: "Node", Plural: "nodes", ShortNames: []string{"no"}, Cluster: true, Path: "minions", Status: true, NoGeneration: true, CreateWithStatus: true,
			Fields: []resource.Field{selectableOr("spec.unschedulable", "false")},
		}, nodeRules()),
		define[corev1.Namespace, corev1.NamespaceList](gv, kind{
			Name: "Namespace", Plural: "namespaces", NameRule: apivalidation.NameIsDNSLabel, ShortNames: []string{"ns"}, Cluster: true, Status: true, NoGeneration: true,
			Fields: fields("status.phase"),
		}, namespaceRules()),
		define[corev1.ResourceQuota, corev1.ResourceQuotaList](gv, kind{
			Name: "ResourceQuota", Plural: "resourcequotas", ShortNames: []string{"quota"}, Status: true, NoGeneration: true, ReturnDeleted: true,
		}, resourceQuotaRules()),
		define[corev1.LimitRange, corev1.LimitRangeList](gv, kind{
			Name: "LimitRange", Plural: "limitranges", ShortNames: []string{"limits"}, NoGeneration: true, UpsertOnUpdate: true,
		}, limitRangeRules()),
	}
}

func volumes() []*resource.Resource {
	gv := corev1.SchemeGroupVersion
	return []*resource.Resource{
		define[corev1.PersistentVolume, corev1.PersistentVolumeList](gv, kind{
			Name: "PersistentVolume", Plural: "persistentvolumes", ShortNames: []string{"pv"}, Cluster: true, Status: true, NoGeneration: true, ReturnDeleted: true,
		}, persistentVolumeRules()),
		define[corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaimList](gv, kind{
			Name: "PersistentVolumeClaim", Plural: "persistentvolumeclaims", ShortNames: []string{"pvc"}, Status: true, NoGeneration: true, ReturnDeleted: true,
		}, persistentVolumeClaimRules()),
	}
}

func configuration() []*resource.Resource {
	gv := corev1.SchemeGroupVersion
	return []*resource.Resource{
		define[corev1.ConfigMap, corev1.ConfigMapList](gv, kind{
			Name: "ConfigMap", Plural: "configmaps", ShortNames: []string{"cm"}, NoGeneration: true,
		}, configMapRules()),
		define[corev1.Secret, corev1.SecretList](gv, kind{
			Name: "Secret", Plural: "secrets", NoGeneration: true, Fields: fields("type"),
		}, secretRules()),
	}
}

// events returns core/v1 events, which is what is stored, and events.k8s.io/v1
// over them.
func events() []*resource.Resource {
	entry := kind{
		Name: "Event", Plural: "events", ShortNames: []string{"ev"}, TTL: eventTTL, NoGeneration: true, UpsertOnUpdate: true,
		Fields: append(fields("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "type"),
			resource.Field{Name: "reportingComponent", Paths: [][]string{{"reportingComponent"}}},
			resource.Field{Name: "source", Paths: [][]string{{"source", "component"}, {"reportingComponent"}}}),
	}
	stored := define[corev1.Event, corev1.EventList](corev1.SchemeGroupVersion, entry, eventRules())

	entry.Fields = []resource.Field{{Name: "reason"}, {Name: "type"}, {Name: "reportingController", Stored: "reportingComponent"}}
	for _, part := range []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"} {
		entry.Fields = append(entry.Fields, resource.Field{Name: "regarding." + part, Stored: "involvedObject." + part})
	}
	shown := define[eventsv1.Event, eventsv1.EventList](eventsv1.SchemeGroupVersion, entry, newEventRules())
	show(shown, stored, newEventFromCore, newEventToCore)
	return []*resource.Resource{stored, shown}
}

// show makes one resource a view of another.
func show[S, V resource.Object](shown, stored *resource.Resource, from func(S) (V, error), to func(V) (S, error)) {
	shown.Storage, shown.StorePrefix = stored, ""
	shown.FromStorage = func(_ context.Context, obj resource.Object) (resource.Object, error) { return from(obj.(S)) }
	shown.ToStorage = func(_ context.Context, obj resource.Object) (resource.Object, error) { return to(obj.(V)) }
}
