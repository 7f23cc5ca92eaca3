package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server/internal/admission"
)

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse(cpu), corev1.ResourceMemory: apiresource.MustParse(memory)}
}

// onNode is a pod that is created with a node.
func onNode(c *cluster, name, node string, change ...func(*corev1.PodSpec)) *corev1.Pod {
	c.t.Helper()
	small := func(s *corev1.PodSpec) {
		s.NodeName = node
		s.Containers[0].Resources.Requests = amounts("100m", "10Mi")
	}
	return must[*corev1.Pod](c.t, name)(create(c, newPod(name, append([]func(*corev1.PodSpec){small}, change...)...)))
}

func resize(c *cluster, pod *corev1.Pod, change func(*corev1.PodSpec)) error {
	wanted := pod.DeepCopy()
	change(&wanted.Spec)
	return client.For[*corev1.Pod](c.Client).Namespace("default").SubResource("resize").Update(c.t.Context(), pod.Name, wanted, metav1.UpdateOptions{})
}

func request(cpu, memory string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests = amounts(cpu, memory) }
}

// TestPodResizeValidator: a pod cannot be resized beyond what its node has for all pods together.
func TestPodResizeValidator(t *testing.T) {
	c, without := start(t), start(t, admission.PodResizeValidator)
	for _, c := range []*cluster{c, without} {
		status := corev1.NodeStatus{Allocatable: amounts("1", "1Gi")}
		createCluster(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: status})
		createCluster(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "linux", Labels: map[string]string{corev1.LabelOSStable: "linux"}}, Status: status})
		createCluster(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "windows", Labels: map[string]string{corev1.LabelOSStable: "windows"}}, Status: status})
	}
	for _, tc := range []struct {
		name, node  string
		cpu, memory string
		message     string // empty: it is resized
		cause       metav1.CauseType
	}{
		{"fits", "n", "1", "1Gi", "", ""},
		{"fits-linux", "linux", "1", "1Gi", "", ""},
		{"unbound", "", "64", "1Ti", "", ""},
		{"cpu", "n", "1001m", "1Gi", "node didn't have enough allocatable resources: cpu, requested: 1001, allocatable: 1000", "NodeCapacity"},
		{"both", "linux", "2", "2Gi", "cpu, requested: 2000, allocatable: 1000; memory, requested: 2147483648, allocatable: 1073741824", "NodeCapacity"},
		{"windows", "windows", "200m", "10Mi", `pod resize is only supported on linux nodes, node "windows" is "windows"`, "UnsupportedPlatform"},
		{"gone", "gone", "200m", "10Mi", `node "gone" not found`, ""},
		{"unchanged", "gone", "100m", "10Mi", "", ""},
	} {
		err := resize(c, onNode(c, tc.name, tc.node), request(tc.cpu, tc.memory))
		if tc.message == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		mustSay(t, tc.name, err, tc.message)
		if tc.cause != "" && !apierrors.HasStatusCause(err, tc.cause) {
			t.Errorf("%s: the cause is not %s: %+v", tc.name, tc.cause, err)
		}
	}
	if err := resize(without, onNode(without, "p", "gone"), request("64", "1Ti")); err != nil {
		t.Errorf("without the plugin: %v", err)
	}
}

// TestNodeDeclaredFeatureValidator: what a resize takes, its node must say that it can do.
func TestNodeDeclaredFeatureValidator(t *testing.T) {
	c, without := start(t), start(t, admission.NodeDeclaredFeatureValidator)
	for _, c := range []*cluster{c, without} {
		createCluster(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Status: corev1.NodeStatus{Allocatable: amounts("1", "1Gi")}})
		createCluster(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Status: corev1.NodeStatus{
			Allocatable: amounts("1", "1Gi"), DeclaredFeatures: []string{"InPlacePodLevelResourcesVerticalScaling"},
		}})
	}
	shared := func(cpu string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Resources = &corev1.ResourceRequirements{Requests: amounts(cpu, "100Mi")}
		}
	}
	if err := resize(c, onNode(c, "can", "new", shared("200m")), shared("300m")); err != nil {
		t.Errorf("a node that declares the feature: %v", err)
	}
	if err := resize(c, onNode(c, "containers", "old", shared("200m")), request("150m", "20Mi")); err != nil {
		t.Errorf("a resize of a container: %v", err)
	}
	mustSay(t, "a node that does not", resize(c, onNode(c, "cannot", "old", shared("200m")), shared("300m")),
		`pod update requires features InPlacePodLevelResourcesVerticalScaling which are not available on node "old"`)
	mustSay(t, "no node", resize(c, onNode(c, "lost", "gone", shared("200m")), shared("300m")), `node "gone" not found`)
	if err := resize(without, onNode(without, "p", "old", shared("200m")), shared("300m")); err != nil {
		t.Errorf("without the plugin: %v", err)
	}
}
