package kubelet

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// absentTags are tags that people write when an image shall not exist.
var absentTags = []string{"404", "nonexistent", "non-existent", "does-not-exist", "doesnotexist", "notfound", "not-found", "invalid"}

// pulls reports whether the image of a container can be pulled. No image is: those that
// cannot exist are those whose registry has a name that is reserved for that (RFC 2606),
// or whose tag says so, and all of a pod with AnnotationPullFails.
func pulls(pod *corev1.Pod, image string) bool {
	if pod.Annotations[AnnotationPullFails] == "true" {
		return false
	}
	name, _, _ := strings.Cut(image, "@")
	registry, path, found := strings.Cut(name, "/")
	if !found {
		registry, path = "", name
	}
	host, _, _ := strings.Cut(registry, ":")
	if strings.HasSuffix(host, ".invalid") || strings.HasPrefix(host, "invalid.") {
		return false
	}
	_, tag, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ":")
	return !slices.Contains(absentTags, tag)
}
