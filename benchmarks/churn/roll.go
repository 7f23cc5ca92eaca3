package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
)

// roll creates a Deployment and rolls it out again and again, with a pause after each time,
// until ctx ends.
func roll(ctx context.Context, c *client.Client, name string, pause time.Duration) error {
	deployments := client.For[*appsv1.Deployment](c).Namespace(metav1.NamespaceDefault)
	labels := map[string]string{"app": name}
	history := int32(2) // as small as what lives should be
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DeploymentSpec{
			RevisionHistoryLimit: &history,
			Selector:             &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.example/web:1"}}},
			},
		},
	}
	d, err := deployments.Create(ctx, d, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	watch, err := deployments.Watch(ctx, metav1.ListOptions{
		ResourceVersion: d.ResourceVersion, FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(),
	})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer watch.Close()
	for round := 1; ; round++ {
		for !rolledOut(d) {
			event, err := watch.Next()
			if err != nil {
				return fmt.Errorf("watch: %w", err)
			}
			d = event.Object
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"round":"%d"}}}}}`, round)
		if d, err = deployments.Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("patch: %w", err)
		}
	}
}

// rolledOut reports whether the Deployment's only pod is one of its latest template, and
// available.
func rolledOut(d *appsv1.Deployment) bool {
	s := &d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == 1 && s.Replicas == 1 && s.AvailableReplicas == 1
}
