package upstream

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/tools/cache"
)

// resource says how one kind is served.
type resource struct {
	version          schema.GroupVersion
	plural, singular string
	namespaced       bool
	newObject        func() runtime.Object
	newList          func() runtime.Object
	// attributes, trigger and indexers are for kinds with fields to select by.
	attributes storage.AttrFunc
	trigger    storage.IndexerFuncs
	indexers   cache.Indexers
	// withStatus adds the status subresource.
	withStatus bool
	// returnDeleted: DELETE answers with the object, as for pods, and not with
	// a Status.
	returnDeleted bool
}

func resources() []resource {
	return []resource{
		{
			version: corev1.SchemeGroupVersion, plural: "pods", singular: "pod", namespaced: true, withStatus: true, returnDeleted: true,
			newObject:  func() runtime.Object { return &corev1.Pod{} },
			newList:    func() runtime.Object { return &corev1.PodList{} },
			attributes: podAttributes,
			trigger:    storage.IndexerFuncs{"spec.nodeName": podNode},
			indexers:   cache.Indexers{storage.FieldIndex("spec.nodeName"): podNodeIndex},
		},
		{
			version: corev1.SchemeGroupVersion, plural: "configmaps", singular: "configmap", namespaced: true,
			newObject: func() runtime.Object { return &corev1.ConfigMap{} },
			newList:   func() runtime.Object { return &corev1.ConfigMapList{} },
		},
		{
			version: corev1.SchemeGroupVersion, plural: "namespaces", singular: "namespace",
			newObject: func() runtime.Object { return &corev1.Namespace{} },
			newList:   func() runtime.Object { return &corev1.NamespaceList{} },
		},
		{
			version: appsv1.SchemeGroupVersion, plural: "replicasets", singular: "replicaset", namespaced: true, withStatus: true,
			newObject: func() runtime.Object { return &appsv1.ReplicaSet{} },
			newList:   func() runtime.Object { return &appsv1.ReplicaSetList{} },
		},
		{
			version: coordinationv1.SchemeGroupVersion, plural: "leases", singular: "lease", namespaced: true,
			newObject: func() runtime.Object { return &coordinationv1.Lease{} },
			newList:   func() runtime.Object { return &coordinationv1.LeaseList{} },
		},
	}
}

// install adds the storage of a resource and of its subresources to the map of
// its version.
func (r resource) install(into map[string]rest.Storage, scheme *runtime.Scheme, options generic.RESTOptionsGetter) error {
	group := schema.GroupResource{Group: r.version.Group, Resource: r.plural}
	spec := strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, namespaced: r.namespaced}
	store := &registry.Store{
		NewFunc:                   r.newObject,
		NewListFunc:               r.newList,
		DefaultQualifiedResource:  group,
		SingularQualifiedResource: schema.GroupResource{Group: r.version.Group, Resource: r.singular},
		CreateStrategy:            spec,
		UpdateStrategy:            spec,
		DeleteStrategy:            deletion(scheme, r.newObject()),
		ReturnDeletedObject:       r.returnDeleted,
		TableConvertor:            rest.NewDefaultTableConvertor(group),
	}
	if r.attributes != nil {
		store.PredicateFunc = r.predicate
	}
	err := store.CompleteWithOptions(&generic.StoreOptions{
		RESTOptions: options, AttrFunc: r.attributes, TriggerFunc: r.trigger, Indexers: &r.indexers,
	})
	if err != nil {
		return fmt.Errorf("storage of %s: %w", group, err)
	}
	into[r.plural] = store
	if r.withStatus {
		status := *store
		status.UpdateStrategy = statusStrategy{spec}
		into[r.plural+"/status"] = &statusREST{store: &status}
	}
	return nil
}

func (r resource) predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	indexed := make([]string, 0, len(r.trigger))
	for name := range r.trigger {
		indexed = append(indexed, name)
	}
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: r.attributes, IndexFields: indexed}
}

// podAttributes is what a pod is selected by, as in a kube-apiserver.
func podAttributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("%T is not a pod", obj)
	}
	return pod.Labels, fields.Set{
		"metadata.name":            pod.Name,
		"metadata.namespace":       pod.Namespace,
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             pod.Status.PodIP,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}, nil
}

func podNode(obj runtime.Object) string {
	if pod, ok := obj.(*corev1.Pod); ok {
		return pod.Spec.NodeName
	}
	return ""
}

func podNodeIndex(obj any) ([]string, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("%T is not a pod", obj)
	}
	return []string{pod.Spec.NodeName}, nil
}
