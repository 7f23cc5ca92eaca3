package server_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
)

// TestObjectsInTheWayOfAStart: what a user of a namespace of the system may write keeps no server from its
// start. It says what it could not write, serves, and writes it when that is out of the way.
func TestObjectsInTheWayOfAStart(t *testing.T) {
	ctx, log := deadline(t), newLogRecorder()
	config := server.Config{DataDir: t.TempDir(), SecurePort: reservePort(t)}
	first := start(t, config)
	c := first.client(t)
	services := client.For[*corev1.Service](c).Namespace(metav1.NamespaceDefault)
	quotas := client.For[*corev1.ResourceQuota](c).Namespace(metav1.NamespaceDefault)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceServices: resource.MustParse("0")}}}
	quota, err := quotas.Create(ctx, quota, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard} // as its controller says
	if _, err := quotas.UpdateStatus(ctx, quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	tracking := client.For[*corev1.ConfigMap](c).Namespace(metav1.NamespaceSystem)
	const trackingName = "kube-apiserver-legacy-service-account-token-tracking"
	if err := tracking.Delete(ctx, trackingName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	yes := true
	odd := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: trackingName}, Data: map[string]string{"since": "x"}, Immutable: &yes}
	if _, err := tracking.Create(ctx, odd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if err := services.Delete(ctx, "kubernetes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	first.stop(t)

	config.Logger = log.logger()
	second := start(t, config)
	log.await(t, "exceeded quota")
	c = second.client(t)
	if err := client.For[*corev1.ResourceQuota](c).Namespace(metav1.NamespaceDefault).Delete(ctx, "none", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	services = client.For[*corev1.Service](c).Namespace(metav1.NamespaceDefault)
	testwait.Stable(t, "the Service is made when the quota is gone", func() (any, bool) {
		service, err := services.Get(ctx, "kubernetes", metav1.GetOptions{})
		return []any{service, err}, err == nil && service.Spec.ClusterIP == "10.96.0.1"
	})
}

// TestAddressOfTheServers: nobody but the Service of the servers gets its address, also while it is not there.
func TestAddressOfTheServers(t *testing.T) {
	ctx := deadline(t)
	services := client.For[*corev1.Service](start(t, server.Config{DataDir: t.TempDir()}).client(t)).Namespace(metav1.NamespaceDefault)
	if err := services.Delete(ctx, "kubernetes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	taken := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 443}}}}
	if _, err := services.Create(ctx, taken, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("another Service at the address: %v, want it refused", err)
	}
	taken.Name = "kubernetes"
	if _, err := services.Create(ctx, taken, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) { // the server makes it again, too
		t.Errorf("the Service itself: %v", err)
	}
}
