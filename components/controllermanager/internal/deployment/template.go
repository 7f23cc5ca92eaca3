package deployment

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/rand"
)

// hashOf names a template. It is a hash of the template's JSON, which stays
// the same when the API gains optional fields. collisions, if any, make it
// another name.
func hashOf(template *corev1.PodTemplateSpec, collisions *int32) (string, error) {
	text, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("encode the pod template: %w", err)
	}
	hash := fnv.New32a()
	_, _ = hash.Write(text) // never fails
	if collisions != nil {
		_, _ = fmt.Fprintf(hash, "/%d", *collisions)
	}
	return rand.SafeEncodeString(fmt.Sprint(hash.Sum32())), nil
}

// sameTemplate compares templates but for the label that the hash puts there.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(a, b)
}

// withLabel returns a copy of labels with one more.
func withLabel(labels map[string]string, key, value string) map[string]string {
	copied := make(map[string]string, len(labels)+1)
	for k, v := range labels {
		copied[k] = v
	}
	copied[key] = value
	return copied
}
