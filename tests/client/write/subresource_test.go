package write_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/subresource"
)

func TestScale(t *testing.T) {
	ctx, cl := connect(t)
	deployments := client.For[*appsv1.Deployment](cl).Namespace("default")
	if _, err := deployments.Create(ctx, web("one"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	scale, err := subresource.SetReplicas(ctx, deployments, "web", 3, metav1.PatchOptions{})
	if err != nil || scale.Spec.Replicas != 3 {
		t.Fatalf("got %v, %v", scale, err)
	}
	if scale, err = subresource.GetScale(ctx, deployments, "web"); err != nil || scale.Spec.Replicas != 3 {
		t.Fatalf("got %v, %v", scale, err)
	}
	old := scale.DeepCopy()
	scale.Spec.Replicas = 0
	if written, err := subresource.UpdateScale(ctx, deployments, scale, metav1.UpdateOptions{}); err != nil || written.Spec.Replicas != 0 {
		t.Errorf("got %v, %v", written, err)
	}
	old.Spec.Replicas = 9
	if _, err := subresource.UpdateScale(ctx, deployments, old, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an old scale: %v", err)
	}
	if _, err := subresource.SetReplicas(ctx, deployments, "web", -1, metav1.PatchOptions{}); err == nil {
		t.Error("a negative number was accepted")
	}
}

// webPod is a pod that a budget covers.
func webPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "one"}}}}
}

func TestBindAndEvict(t *testing.T) {
	ctx, cl := connect(t)
	pods := client.For[*corev1.Pod](cl).Namespace("default")
	created, err := pods.Create(ctx, webPod(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := subresource.Bind(ctx, pods, "web", "another", "node"); !apierrors.IsConflict(err) {
		t.Errorf("another UID: %v", err)
	}
	if err := subresource.Bind(ctx, pods, "web", created.UID, "node"); err != nil {
		t.Fatal(err)
	}
	if pod, err := pods.Get(ctx, "web", metav1.GetOptions{}); err != nil || pod.Spec.NodeName != "node" {
		t.Errorf("got %v, %v", pod, err)
	}
	if err := subresource.Bind(ctx, pods, "web", "", "other"); !apierrors.IsConflict(err) {
		t.Errorf("bound again: %v", err)
	}
	if _, err := pods.UpdateStatusWithRetry(ctx, "web", func(pod *corev1.Pod) error {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	all := intstr.FromString("100%")
	budgets := client.For[*policyv1.PodDisruptionBudget](cl).Namespace("default")
	if _, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: webPod().Labels}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// What the disruption controller would write.
	if _, err := budgets.UpdateStatusWithRetry(ctx, "web", func(budget *policyv1.PodDisruptionBudget) error {
		budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, ExpectedPods: 1, DesiredHealthy: 1, CurrentHealthy: 1}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := subresource.Evict(ctx, pods, "web", metav1.DeleteOptions{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("over the budget: %v", err)
	}
	if err := budgets.Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	if err := subresource.Evict(ctx, pods, "web", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Errorf("without a budget: %v", err)
	}
	if _, err := pods.Get(ctx, "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("evicted: %v", err)
	}
}

func TestCreateToken(t *testing.T) {
	ctx, cl := connect(t)
	accounts := client.For[*corev1.ServiceAccount](cl).Namespace("default")
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	hour := int64(3600)
	token, err := subresource.CreateToken(ctx, accounts, "robot", authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour})
	if err != nil || token.Token == "" || token.ExpirationTimestamp.IsZero() {
		t.Errorf("got %v, %v", token, err)
	}
}

func TestUpdateApproval(t *testing.T) {
	ctx, cl := connect(t)
	requests := client.For[*certificatesv1.CertificateSigningRequest](cl)
	if _, err := subresource.UpdateApproval(ctx, requests, nil, metav1.UpdateOptions{}); err == nil {
		t.Error("nil was accepted")
	}
	_, err := subresource.UpdateApproval(ctx, requests, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "missing"}}, metav1.UpdateOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}
