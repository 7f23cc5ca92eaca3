package quota

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func podOf(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: containers}}
}

// TestUsage: the amounts of Kubernetes' documentation on quotas.
func TestUsage(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := container("sidecar", amounts("cpu", "1"), nil)
	sidecar.RestartPolicy = &always
	withInit := podOf(container("a", amounts("cpu", "1"), nil))
	withInit.Spec.InitContainers = []corev1.Container{container("init", amounts("cpu", "5"), nil)}
	withSidecar := podOf(container("a", amounts("cpu", "1"), nil))
	withSidecar.Spec.InitContainers = []corev1.Container{sidecar}
	ended := podOf(container("a", amounts("cpu", "1"), nil))
	ended.Status.Phase = corev1.PodFailed
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	leaving := podOf(container("a", amounts("cpu", "1"), nil))
	leaving.DeletionTimestamp, leaving.DeletionGracePeriodSeconds = &metav1.Time{Time: now.Add(-time.Minute)}, new(int64(30))
	class := "gold"

	for name, test := range map[string]struct {
		resource schema.GroupResource
		obj      any
		want     corev1.ResourceList
	}{
		"pod": {schema.GroupResource{Resource: "pods"}, podOf(
			container("a", amounts("cpu", "1", "memory", "1Gi", "nvidia.com/gpu", "1", "hugepages-2Mi", "4Mi"), amounts("cpu", "2", "nvidia.com/gpu", "1")),
			container("b", amounts("cpu", "500m", "ephemeral-storage", "1Gi"), amounts("memory", "3Gi", "ephemeral-storage", "2Gi"))),
			amounts("count/pods", "1", "pods", "1", "cpu", "1500m", "requests.cpu", "1500m", "limits.cpu", "2", "memory", "1Gi", "requests.memory", "1Gi",
				"limits.memory", "3Gi", "requests.nvidia.com/gpu", "1", "hugepages-2Mi", "4Mi", "requests.hugepages-2Mi", "4Mi",
				"ephemeral-storage", "1Gi", "requests.ephemeral-storage", "1Gi", "limits.ephemeral-storage", "2Gi")},
		"init containers run before":  {schema.GroupResource{Resource: "pods"}, withInit, amounts("count/pods", "1", "pods", "1", "cpu", "5", "requests.cpu", "5")},
		"sidecars run beside":         {schema.GroupResource{Resource: "pods"}, withSidecar, amounts("count/pods", "1", "pods", "1", "cpu", "2", "requests.cpu", "2")},
		"a pod that has ended":        {schema.GroupResource{Resource: "pods"}, ended, amounts("count/pods", "1")},
		"a pod that should have gone": {schema.GroupResource{Resource: "pods"}, leaving, amounts("count/pods", "1")},
		"cluster IP": {schema.GroupResource{Resource: "services"}, &corev1.Service{Spec: corev1.ServiceSpec{Ports: make([]corev1.ServicePort, 2)}},
			amounts("count/services", "1", "services", "1", "services.nodeports", "0", "services.loadbalancers", "0")},
		"node port": {schema.GroupResource{Resource: "services"}, &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: make([]corev1.ServicePort, 2)}},
			amounts("count/services", "1", "services", "1", "services.nodeports", "2", "services.loadbalancers", "0")},
		"load balancer": {schema.GroupResource{Resource: "services"}, &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: make([]corev1.ServicePort, 2)}},
			amounts("count/services", "1", "services", "1", "services.nodeports", "2", "services.loadbalancers", "1")},
		"load balancer without node ports": {schema.GroupResource{Resource: "services"}, &corev1.Service{Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: new(false), Ports: []corev1.ServicePort{{NodePort: 30000}, {}},
		}}, amounts("count/services", "1", "services", "1", "services.nodeports", "1", "services.loadbalancers", "1")},
		"claim": {schema.GroupResource{Resource: "persistentvolumeclaims"}, &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: amounts("storage", "1500m")},
		}}, amounts("count/persistentvolumeclaims", "1", "persistentvolumeclaims", "1", "requests.storage", "2",
			"gold.storageclass.storage.k8s.io/persistentvolumeclaims", "1", "gold.storageclass.storage.k8s.io/requests.storage", "2")},
		"claim of devices": {DeviceClaims, &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}},
			{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "nic", AllocationMode: resourcev1.DeviceAllocationModeAll}},
			{FirstAvailable: []resourcev1.DeviceSubRequest{
				{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
				{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 3},
				{DeviceClassName: "tpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 4},
			}},
		}}}}, amounts("count/resourceclaims.resource.k8s.io", "1", "gpu.deviceclass.resource.k8s.io/devices", "5",
			"nic.deviceclass.resource.k8s.io/devices", "32", "tpu.deviceclass.resource.k8s.io/devices", "4")},
		"secret":          {schema.GroupResource{Resource: "secrets"}, nil, amounts("count/secrets", "1", "secrets", "1")},
		"custom resource": {schema.GroupResource{Group: "stable.example.com", Resource: "crontabs"}, nil, amounts("count/crontabs.stable.example.com", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			evaluator, ok := For(test.resource)
			if !ok {
				t.Fatal("the resource is not limited")
			}
			used := evaluator.Usage(test.obj, now)
			if !Equal(used, test.want) {
				t.Errorf("used:\n%v\nwant:\n%v", used, test.want)
			}
			if got := evaluator.Tracked(used); len(got) != len(used) {
				t.Errorf("of what it uses, %v, the evaluator knows only %v", used, got)
			}
		})
	}
}

func TestTrackedNames(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, want := range map[corev1.ResourceName]bool{
		"requests.nvidia.com/gpu": true, "nvidia.com/gpu": false, "limits.nvidia.com/gpu": false, "requests.storage": false,
		"requests.deviceclass.resource.kubernetes.io/gold": true, "requests.kubernetes.io/batteries": false, "count/pods": true, "count/podtemplates": false,
	} {
		evaluator, _ := For(pods)
		if got := len(evaluator.Tracked(corev1.ResourceList{name: one()})) == 1; got != want {
			t.Errorf("%s is an amount of pods: %v, want %v", name, got, want)
		}
	}
	if _, limited := For(schema.GroupResource{Resource: "events"}); limited {
		t.Error("events are limited")
	}
	if got := Resources("count/deployments.apps"); len(got) != 1 || got[0] != (schema.GroupResource{Group: "apps", Resource: "deployments"}) {
		t.Errorf("count/deployments.apps counts %v", got)
	}
	if got := Resources("gpu.deviceclass.resource.k8s.io/devices"); len(got) != 1 || got[0] != DeviceClaims {
		t.Errorf("devices of a class are of %v", got)
	}
	if got := Resources("gold.storageclass.storage.k8s.io/requests.storage"); len(got) != 1 || got[0].Resource != "persistentvolumeclaims" {
		t.Errorf("storage of a class is of %v", got)
	}
}

func TestScopes(t *testing.T) {
	plain, busy := podOf(container("a", nil, nil)), podOf(container("a", amounts("cpu", "1"), nil))
	limited := podOf(container("a", nil, nil))
	limited.Spec.ActiveDeadlineSeconds = new(int64(5))
	urgent := podOf(container("a", nil, nil))
	urgent.Spec.PriorityClassName = "high"
	crossing := podOf(container("a", nil, nil))
	crossing.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{Namespaces: []string{"other"}}},
	}}
	in := func(operator corev1.ScopeSelectorOperator, values ...string) *corev1.ScopeSelector {
		return &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values},
		}}
	}
	scope := func(scopes ...corev1.ResourceQuotaScope) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Scopes: scopes}
	}
	for name, test := range map[string]struct {
		spec  corev1.ResourceQuotaSpec
		match []*corev1.Pod
	}{
		"none":           {scope(), []*corev1.Pod{plain, busy, limited, urgent, crossing}},
		"Terminating":    {scope(corev1.ResourceQuotaScopeTerminating), []*corev1.Pod{limited}},
		"NotTerminating": {scope(corev1.ResourceQuotaScopeNotTerminating), []*corev1.Pod{plain, busy, urgent, crossing}},
		"BestEffort":     {scope(corev1.ResourceQuotaScopeBestEffort), []*corev1.Pod{plain, limited, urgent, crossing}},
		"NotBestEffort":  {scope(corev1.ResourceQuotaScopeNotBestEffort), []*corev1.Pod{busy}},
		"both": {scope(corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeTerminating),
			[]*corev1.Pod{limited}},
		"PriorityClass": {scope(corev1.ResourceQuotaScopePriorityClass), []*corev1.Pod{urgent}},
		"CrossNamespace": {scope(corev1.ResourceQuotaScopeCrossNamespacePodAffinity),
			[]*corev1.Pod{crossing}},
		"In":           {corev1.ResourceQuotaSpec{ScopeSelector: in(corev1.ScopeSelectorOpIn, "high")}, []*corev1.Pod{urgent}},
		"NotIn":        {corev1.ResourceQuotaSpec{ScopeSelector: in(corev1.ScopeSelectorOpNotIn, "high")}, []*corev1.Pod{plain, busy, limited, crossing}},
		"DoesNotExist": {corev1.ResourceQuotaSpec{ScopeSelector: in(corev1.ScopeSelectorOpDoesNotExist)}, []*corev1.Pod{plain, busy, limited, crossing}},
	} {
		t.Run(name, func(t *testing.T) {
			pods, _ := For(schema.GroupResource{Resource: "pods"})
			q := &corev1.ResourceQuota{Spec: test.spec}
			for i, pod := range []*corev1.Pod{plain, busy, limited, urgent, crossing} {
				want := false
				for _, match := range test.match {
					want = want || match == pod
				}
				if got := pods.InScopes(q, pod); got != want {
					t.Errorf("pod %d is in scope: %v, want %v", i, got, want)
				}
			}
			secrets, _ := For(schema.GroupResource{Resource: "secrets"})
			if got, want := secrets.InScopes(q, nil), name == "none"; got != want {
				t.Errorf("secrets are in scope: %v, want %v", got, want)
			}
		})
	}
}

func TestAmountsThatContainersMustState(t *testing.T) {
	pods, _ := For(schema.GroupResource{Resource: "pods"})
	required := pods.Tracked(amounts("limits.cpu", "1", "requests.memory", "1Gi", "pods", "1", "requests.nvidia.com/gpu", "1"))
	pod := podOf(container("b", nil, amounts("cpu", "1")), container("a", nil, nil))
	err := pods.Missing(pod, required)
	if want := "must specify limits.cpu for: a; requests.memory for: a,b"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("memory", "1Gi")}
	if err := pods.Missing(pod, required); err != nil {
		t.Errorf("a pod that states amounts for all its containers: %v", err)
	}
}

func TestLists(t *testing.T) {
	sum := amounts("a", "1", "b", "5")
	Add(sum, amounts("a", "1", "c", "3"))
	Subtract(sum, amounts("b", "7", "x", "1"))
	if want := amounts("a", "2", "b", "0", "c", "3"); !Equal(sum, want) {
		t.Errorf("got %v, want %v", sum, want)
	}
	if got := Increase(sum, amounts("a", "1", "c", "4")); !Equal(got, amounts("a", "1")) {
		t.Errorf("increase: %v", got)
	}
	if got := Exceeding(sum, amounts("a", "1", "c", "3")); len(got) != 1 || got[0] != "a" {
		t.Errorf("exceeding: %v", got)
	}
}
