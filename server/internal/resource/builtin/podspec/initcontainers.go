package podspec

// DropInitContainerAnnotations deletes the annotations in which init containers stood before they had a
// field, until Kubernetes 1.8. kube-apiserver keeps none of them in a Pod, a template or what is bound.
func DropInitContainerAnnotations(annotations map[string]string) {
	for _, version := range [...]string{"alpha", "beta"} {
		delete(annotations, "pod."+version+".kubernetes.io/init-containers")
		delete(annotations, "pod."+version+".kubernetes.io/init-container-statuses")
	}
}
