package upstream

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// newScheme registers each Go type as its group's v1 and as its group's
// internal version. The internal types and conversions of a kube-apiserver are
// not published; with one type in both roles a conversion is nothing, and what
// is stored and served is the same v1.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(metainternalversion.AddToScheme(scheme))
	// Options such as DeleteOptions are decoded as core's, whatever the group.
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})

	register := func(version schema.GroupVersion, types ...runtime.Object) {
		scheme.AddKnownTypes(version, types...)
		scheme.AddKnownTypes(schema.GroupVersion{Group: version.Group, Version: runtime.APIVersionInternal}, types...)
		metav1.AddToGroupVersion(scheme, version)
		utilruntime.Must(scheme.SetVersionPriority(version))
	}
	register(corev1.SchemeGroupVersion,
		&corev1.Pod{}, &corev1.PodList{},
		&corev1.ConfigMap{}, &corev1.ConfigMapList{},
		&corev1.Namespace{}, &corev1.NamespaceList{})
	register(appsv1.SchemeGroupVersion, &appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{})
	register(coordinationv1.SchemeGroupVersion, &coordinationv1.Lease{}, &coordinationv1.LeaseList{})

	utilruntime.Must(scheme.AddFieldLabelConversionFunc(corev1.SchemeGroupVersion.WithKind("Pod"), podFieldLabel))
	return scheme
}

// podFieldLabel lists the fields that pods can be selected by.
func podFieldLabel(label, value string) (string, string, error) {
	switch label {
	case "metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
		"spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName":
		return label, value, nil
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}
