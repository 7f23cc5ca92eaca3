package resourcequota_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// start starts a server without controllers: the tests write what a controller would.
func start(t *testing.T) *client.Client {
	t.Helper()
	return levelwiretest.Start(t).Client(client.Options{})
}

// limit creates a quota of which nothing is used.
func limit(t *testing.T, cl *client.Client, name string, spec corev1.ResourceQuotaSpec) {
	t.Helper()
	quotas := client.For[*corev1.ResourceQuota](cl).Namespace("default")
	q, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q.Status.Hard, q.Status.Used = spec.Hard, corev1.ResourceList{}
	for amount := range spec.Hard {
		q.Status.Used[amount] = resource.MustParse("0")
	}
	if _, err = quotas.UpdateStatus(t.Context(), q, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := quotas.Get(t.Context(), name, metav1.GetOptions{}); err != nil { // waits for the server's cache
		t.Fatal(err)
	}
}

func hard(pairs ...string) corev1.ResourceQuotaSpec {
	return corev1.ResourceQuotaSpec{Hard: amounts(pairs...)}
}

func used(t *testing.T, cl *client.Client, name string) corev1.ResourceList {
	t.Helper()
	q, err := client.For[*corev1.ResourceQuota](cl).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return q.Status.Used
}

func mustUse(t *testing.T, cl *client.Client, name string, pairs ...string) {
	t.Helper()
	got := used(t, cl, name)
	for amount, want := range amounts(pairs...) {
		if has := got[amount]; has.Cmp(want) != 0 {
			t.Errorf("quota %s: %s of %s is used, want %s", name, has.String(), amount, want.String())
		}
	}
}

func create[T client.Object](t *testing.T, cl *client.Client, obj T, opts ...metav1.CreateOptions) error {
	t.Helper()
	opts = append(opts, metav1.CreateOptions{})
	_, err := client.For[T](cl).Namespace("default").Create(t.Context(), obj, opts[0])
	return err
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func pod(name string, requests, limits corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}},
	}}}
}

func mustSay(t *testing.T, what string, err error, text string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want a 403 with %q", what, err, text)
	}
}

func ok(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// TestMessages: clients know these texts from kube-apiserver.
func TestMessages(t *testing.T) {
	cl := start(t)
	limit(t, cl, "compute", hard("requests.cpu", "2", "limits.memory", "2Gi", "pods", "3"))
	mustSay(t, "a pod that does not say", create(t, cl, pod("a", nil, nil)),
		`pods "a" is forbidden: failed quota: compute: must specify limits.memory for: c; requests.cpu for: c`)
	ok(t, "a pod within the quota", create(t, cl, pod("b", amounts("cpu", "1500m"), amounts("memory", "1Gi"))))
	mustUse(t, cl, "compute", "requests.cpu", "1500m", "limits.memory", "1Gi", "pods", "1")
	mustSay(t, "a pod above it", create(t, cl, pod("c", amounts("cpu", "1"), amounts("memory", "1Gi"))),
		`pods "c" is forbidden: exceeded quota: compute, requested: requests.cpu=1, used: requests.cpu=1500m, limited: requests.cpu=2`)
	mustSay(t, "a pod above two amounts", create(t, cl, pod("c", amounts("cpu", "1"), amounts("memory", "3Gi"))),
		`exceeded quota: compute, requested: limits.memory=3Gi,requests.cpu=1, used: limits.memory=1Gi,requests.cpu=1500m, limited: limits.memory=2Gi,requests.cpu=2`)
	mustUse(t, cl, "compute", "requests.cpu", "1500m", "limits.memory", "1Gi", "pods", "1")
}

// TestDevices: devices of a class are limited by what claims ask for.
func TestDevices(t *testing.T) {
	cl := start(t)
	limit(t, cl, "devices", hard("gpu.deviceclass.resource.k8s.io/devices", "3"))
	claim := func(name string) *resourcev1.ResourceClaim {
		return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "a", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}},
		}}}}
	}
	ok(t, "within the quota", create(t, cl, claim("a")))
	mustSay(t, "above it", create(t, cl, claim("b")),
		"exceeded quota: devices, requested: gpu.deviceclass.resource.k8s.io/devices=2, used: gpu.deviceclass.resource.k8s.io/devices=2, limited: gpu.deviceclass.resource.k8s.io/devices=3")
}

// TestRefusedWritesUseNothing: neither a dry run, nor a name that is taken, nor a second
// quota that refuses.
func TestRefusedWritesUseNothing(t *testing.T) {
	cl := start(t)
	limit(t, cl, "first", hard("configmaps", "10"))
	limit(t, cl, "second", hard("count/configmaps", "2"))
	ok(t, "a dry run", create(t, cl, configMap("dry"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	mustUse(t, cl, "first", "configmaps", "0")
	ok(t, "the first", create(t, cl, configMap("a")))
	if err := create(t, cl, configMap("a")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a name that is taken: %v", err)
	}
	mustUse(t, cl, "first", "configmaps", "1")
	mustUse(t, cl, "second", "count/configmaps", "1")
	ok(t, "the second", create(t, cl, configMap("b")))
	mustSay(t, "the third", create(t, cl, configMap("c")), "exceeded quota: second")
	mustSay(t, "its dry run", create(t, cl, configMap("c"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}), "exceeded quota: second")
	mustUse(t, cl, "first", "configmaps", "2")
	mustUse(t, cl, "second", "count/configmaps", "2")
}

// TestUpdatesUseTheDifference: a service that becomes a load balancer, a claim that
// grows.
func TestUpdatesUseTheDifference(t *testing.T) {
	cl := start(t)
	limit(t, cl, "q", hard("services", "2", "services.nodeports", "1", "services.loadbalancers", "1", "requests.storage", "3Gi"))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	ok(t, "a service", create(t, cl, service))
	mustUse(t, cl, "q", "services", "1", "services.nodeports", "0", "services.loadbalancers", "0")
	services := client.For[*corev1.Service](cl).Namespace("default")
	change := func(f func(*corev1.Service)) error {
		service, err := services.Get(t.Context(), "s", metav1.GetOptions{})
		if err == nil {
			f(service)
			_, err = services.Update(t.Context(), service, metav1.UpdateOptions{})
		}
		return err
	}
	ok(t, "its node port", change(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }))
	ok(t, "its load balancer", change(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer }))
	mustUse(t, cl, "q", "services", "1", "services.nodeports", "1", "services.loadbalancers", "1")
	mustSay(t, "a second port", change(func(s *corev1.Service) {
		s.Spec.Ports[0].Name = "a"
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "b", Port: 81})
	}), "exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1")
}

// TestScopes: each pod counts for the quotas of its scopes only.
func TestScopes(t *testing.T) {
	cl := start(t)
	limit(t, cl, "best-effort", corev1.ResourceQuotaSpec{Hard: amounts("pods", "1"), Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}})
	limit(t, cl, "others", corev1.ResourceQuotaSpec{Hard: amounts("pods", "1"), Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort}})
	ok(t, "a best-effort pod", create(t, cl, pod("a", nil, nil)))
	ok(t, "another pod", create(t, cl, pod("b", amounts("cpu", "1"), nil)))
	mustSay(t, "a second best-effort pod", create(t, cl, pod("c", nil, nil)), "exceeded quota: best-effort, requested: pods=1, used: pods=1, limited: pods=1")
	mustSay(t, "a second other", create(t, cl, pod("d", amounts("cpu", "1"), nil)), "exceeded quota: others")
}

func TestUnknownUsage(t *testing.T) {
	cl := start(t)
	limit(t, cl, "q", hard("configmaps", "1"))
	quotas := client.For[*corev1.ResourceQuota](cl).Namespace("default")
	q, err := quotas.Get(t.Context(), "q", metav1.GetOptions{})
	if err == nil {
		q.Status.Used = nil
		_, err = quotas.UpdateStatus(t.Context(), q, metav1.UpdateOptions{})
	}
	ok(t, "without usage", err)
	mustSay(t, "a config map", create(t, cl, configMap("a")), "status unknown for quota: q, resources: configmaps")
}

// TestConcurrentWriters: 64 writers together get exactly what two quotas allow.
func TestConcurrentWriters(t *testing.T) {
	cl := start(t)
	limit(t, cl, "first", hard("configmaps", "40"))
	limit(t, cl, "second", hard("count/configmaps", "30"))
	var created atomic.Int64
	var group sync.WaitGroup
	for writer := range 64 {
		group.Go(func() {
			for i := range 2 {
				switch err := create(t, cl, configMap(fmt.Sprintf("c-%d-%d", writer, i))); {
				case err == nil:
					created.Add(1)
				default:
					mustSay(t, "above the quota", err, "exceeded quota: second")
				}
			}
		})
	}
	group.Wait()
	if got := created.Load(); got != 30 {
		t.Errorf("%d were created, want 30", got)
	}
	mustUse(t, cl, "first", "configmaps", "30")
	mustUse(t, cl, "second", "count/configmaps", "30")
}
