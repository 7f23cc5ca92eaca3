package podsecurity

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// podTemplateOf returns the template of an object from which pods are made, nil if it
// has none.
func podTemplateOf(q *registry.Request) (*metav1.ObjectMeta, *corev1.PodSpec) {
	var template *corev1.PodTemplateSpec
	switch o := q.Object.(type) {
	case *corev1.PodTemplate:
		template = &o.Template
	case *corev1.ReplicationController:
		template = o.Spec.Template
	case *appsv1.ReplicaSet:
		template = &o.Spec.Template
	case *appsv1.Deployment:
		template = &o.Spec.Template
	case *appsv1.DaemonSet:
		template = &o.Spec.Template
	case *appsv1.StatefulSet:
		template = &o.Spec.Template
	case *batchv1.Job:
		template = &o.Spec.Template
	case *batchv1.CronJob:
		template = &o.Spec.JobTemplate.Spec.Template
	}
	if template == nil {
		return nil, nil
	}
	return &template.ObjectMeta, &template.Spec
}
