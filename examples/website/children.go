package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/objectmeta"
)

// apply creates an object of the Website, or changes it to what is wanted, and returns
// it as it is then. It is server-side apply: fields that are not in wanted, such as the
// status and the server's defaults, stay as they are, and Force takes back what others
// have changed of those that are.
func apply[T client.Object](ctx context.Context, r *reconciler, website *Website, wanted T) (T, error) {
	wanted.SetNamespace(website.Namespace)
	wanted.SetName(childName(website))
	wanted.SetLabels(map[string]string{websiteLabel: string(website.UID)})
	if err := objectmeta.SetControllerReference(website, wanted, r.client.Scheme()); err != nil {
		return wanted, err
	}
	return client.For[T](r.client).Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: name, Force: true})
}

// childName is one that other objects of the namespace do not have by accident: apply
// would take them over.
func childName(website *Website) string { return website.Name + "-website" }

// page holds the HTML.
func page(website *Website) *corev1.ConfigMap {
	return &corev1.ConfigMap{Data: map[string]string{"index.html": website.Spec.Page}}
}

// server serves the page.
func server(website *Website) *appsv1.Deployment {
	labels := map[string]string{websiteLabel: string(website.UID)}
	return &appsv1.Deployment{
		Spec: appsv1.DeploymentSpec{
			Replicas: &website.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "server", Image: "nginx:stable",
						Ports:        []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
						VolumeMounts: []corev1.VolumeMount{{Name: "page", MountPath: "/usr/share/nginx/html", ReadOnly: true}},
					}},
					Volumes: []corev1.Volume{{Name: "page", VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: childName(website)}},
					}}},
				},
			},
		},
	}
}
