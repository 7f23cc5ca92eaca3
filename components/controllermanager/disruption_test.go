package controller_test

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/client"
)

func newBudget(name string, spec policyv1.PodDisruptionBudgetSpec) *policyv1.PodDisruptionBudget {
	spec.Selector = selectWeb()
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

// stands is a budget's status in short: allowed, healthy of desired, expected.
func stands(b *policyv1.PodDisruptionBudget) string {
	s := b.Status
	return fmt.Sprintf("%d allowed, %d of %d healthy, %d expected", s.DisruptionsAllowed, s.CurrentHealthy, s.DesiredHealthy, s.ExpectedPods)
}

func awaitBudget(c *cluster, name, want string) {
	c.t.Helper()
	await(c, in[*policyv1.PodDisruptionBudget](c), name, want, func(b *policyv1.PodDisruptionBudget) bool {
		return stands(b) == want && b.Status.ObservedGeneration == b.Generation
	})
}

func podNames(c *cluster) []string {
	c.t.Helper()
	list, err := in[*corev1.Pod](c).List(c.ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

func TestBudgetsFollowTheirPods(t *testing.T) {
	c := newCluster(t, 2)
	c.startManager()
	deployments, budgets := in[*appsv1.Deployment](c), in[*policyv1.PodDisruptionBudget](c)
	create(c, deployments, newDeployment("web", 4))
	create(c, budgets, newBudget("half", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("50%"))}))
	create(c, budgets, newBudget("three", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(3))}))
	create(c, budgets, newBudget("one", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))}))
	awaitBudget(c, "half", "2 allowed, 4 of 2 healthy, 4 expected")
	awaitBudget(c, "three", "1 allowed, 4 of 3 healthy, 4 expected")
	awaitBudget(c, "one", "1 allowed, 4 of 3 healthy, 4 expected")
	change(c, deployments, "web", func(d *appsv1.Deployment) { *d.Spec.Replicas = 2 })
	awaitBudget(c, "half", "1 allowed, 2 of 1 healthy, 2 expected")
	awaitBudget(c, "three", "0 allowed, 2 of 3 healthy, 2 expected")
	change(c, budgets, "three", func(b *policyv1.PodDisruptionBudget) { *b.Spec.MinAvailable = intstr.FromInt32(1) })
	awaitBudget(c, "three", "1 allowed, 2 of 1 healthy, 2 expected")
}

func evict(c *cluster, name string) error {
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return in[*corev1.Pod](c).SubResource("eviction").Create(c.ctx, name, eviction, metav1.CreateOptions{})
}

// One of three pods may go, and the next only when there is another in its
// place, which there cannot be while no node has the label that new pods need.
func TestEvictionsWaitForTheirBudget(t *testing.T) {
	c := newCluster(t, 1)
	c.startManager()
	nodes := client.For[*corev1.Node](c.client)
	create(c, in[*appsv1.ReplicaSet](c), newSet("web", 3))
	create(c, in[*policyv1.PodDisruptionBudget](c), newBudget("web", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2))}))
	awaitBudget(c, "web", "1 allowed, 3 of 2 healthy, 3 expected")
	// The scheduler could see that a node is closed after it has seen the next pod. The ReplicaSet's
	// controller makes no pod before it has seen its template.
	change(c, in[*appsv1.ReplicaSet](c), "web", func(s *appsv1.ReplicaSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"room": "yes"} })
	names := podNames(c)
	if err := evict(c, names[0]); err != nil {
		t.Fatal(err)
	}
	if err := evict(c, names[1]); !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Fatalf("the second of three: %v", err)
	}
	awaitBudget(c, "web", "0 allowed, 2 of 2 healthy, 3 expected")
	change(c, nodes, "node-1", func(n *corev1.Node) { n.Labels["room"] = "yes" })
	awaitBudget(c, "web", "1 allowed, 3 of 2 healthy, 3 expected")
	if err := evict(c, names[1]); err != nil {
		t.Errorf("with another in place of the first: %v", err)
	}
}

// The pods of an owner that has no scale have nothing to take a part of: the
// budget says so and closes.
func TestBudgetOfUnscalablePods(t *testing.T) {
	c := newCluster(t, 1)
	c.startManager()
	daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DaemonSetSpec{Selector: selectWeb(), Template: podTemplate("web:1")}}
	create(c, in[*appsv1.DaemonSet](c), daemons)
	create(c, in[*policyv1.PodDisruptionBudget](c), newBudget("one", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))}))
	await(c, in[*policyv1.PodDisruptionBudget](c), "one", "failed", func(b *policyv1.PodDisruptionBudget) bool {
		return slices.ContainsFunc(b.Status.Conditions, func(c metav1.Condition) bool {
			return c.Reason == policyv1.SyncFailedReason && c.Message == "daemonsets.apps does not implement the scale subresource"
		})
	})
}

// Pods of a custom resource are counted by its scale, also when its kind has
// moved to another version since it was first asked for.
func TestBudgetOfCustomOwner(t *testing.T) {
	c := newCluster(t, 1)
	c.startManager()
	defineWidgets(c)
	change(c, definitions(c), "widgets.example.com", func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{
			Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"},
		}
	})
	widget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2)}}}
	widget.SetGroupVersionKind(widgetKind)
	widget.SetName("w")
	widget = create(c, client.Dynamic(c.client, widgets).Namespace("default"), widget)
	for _, name := range []string{"a", "b"} {
		template := podTemplate("web:1")
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Name, pod.OwnerReferences = name, []metav1.OwnerReference{*metav1.NewControllerRef(widget, widgetKind)}
		create(c, in[*corev1.Pod](c), pod)
	}
	budgets := in[*policyv1.PodDisruptionBudget](c)
	create(c, budgets, newBudget("one", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))}))
	awaitBudget(c, "one", "1 allowed, 2 of 1 healthy, 2 expected")
	change(c, definitions(c), "widgets.example.com", func(d *apiextensionsv1.CustomResourceDefinition) {
		next := *d.Spec.Versions[0].DeepCopy()
		next.Name = "v2"
		d.Spec.Versions[0].Served, d.Spec.Versions[0].Storage = false, false
		d.Spec.Versions = append(d.Spec.Versions, next)
	})
	change(c, budgets, "one", func(b *policyv1.PodDisruptionBudget) { *b.Spec.MaxUnavailable = intstr.FromInt32(2) })
	awaitBudget(c, "one", "2 allowed, 2 of 0 healthy, 2 expected")
}
