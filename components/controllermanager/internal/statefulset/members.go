package statefulset

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

// members are a set's pods, and the orphans that could be its: those with a name of the set's.
type members struct {
	pods *pods.Source
	set  *appsv1.StatefulSet
}

// Candidates returns them. The slice is the caller's.
func (m members) Candidates(owner metav1.Object) ([]*corev1.Pod, error) {
	all, err := m.pods.Candidates(owner)
	return slices.DeleteFunc(all, func(pod *corev1.Pod) bool {
		_, named := ordinalOf(m.set, pod)
		return !named && metav1.GetControllerOfNoCopy(pod) == nil
	}), err
}
