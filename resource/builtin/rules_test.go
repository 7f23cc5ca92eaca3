package builtin_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPodGrace(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	for _, tt := range []struct {
		name      string
		node      string
		phase     corev1.PodPhase
		spec      *int64
		requested *int64
		want      int64
	}{
		{"unbound goes at once", "", corev1.PodPending, seconds(30), nil, 0},
		{"bound takes the pod's period", "n", corev1.PodRunning, seconds(20), nil, 20},
		{"bound and pending too", "n", corev1.PodPending, seconds(20), nil, 20},
		{"the request wins", "n", corev1.PodRunning, seconds(20), seconds(5), 5},
		{"zero is zero", "n", corev1.PodRunning, seconds(20), seconds(0), 0},
		{"negative is one", "n", corev1.PodRunning, seconds(20), seconds(-1), 1},
		{"nothing said", "n", corev1.PodRunning, nil, nil, 30},
		{"ended", "n", corev1.PodSucceeded, seconds(20), seconds(5), 0},
		{"failed", "n", corev1.PodFailed, seconds(20), nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, obj := manifest(t, "pod")
			pod := obj.(*corev1.Pod)
			pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds, pod.Status.Phase = tt.node, tt.spec, tt.phase
			if got := r.Strategy.Graceful(pod, tt.requested); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestImmutableConfiguration(t *testing.T) {
	r, old := manifest(t, "secret", "immutable=true")
	for _, edits := range [][]string{{"immutable=true", "data.a=eA=="}, {"immutable=false"}, {}} {
		_, obj := manifest(t, "secret", edits...)
		if errs := r.Strategy.ValidateUpdate(obj, old); len(errs) == 0 {
			t.Errorf("%v: an immutable secret was changed", edits)
		}
	}
	_, same := manifest(t, "secret", "immutable=true", "metadata.labels={a: b}")
	if errs := r.Strategy.ValidateUpdate(same, old); len(errs) > 0 {
		t.Errorf("labels of an immutable secret: %v", errs)
	}
}

func TestServiceKeepsItsAddress(t *testing.T) {
	r, obj := manifest(t, "service-balanced")
	old := obj.(*corev1.Service)
	old.Spec.ClusterIP, old.Spec.ClusterIPs = "10.0.0.7", []string{"10.0.0.7"}
	old.Spec.Ports[0].NodePort = 30001
	_, obj = manifest(t, "service-balanced")
	svc := obj.(*corev1.Service)
	r.Strategy.PrepareForUpdate(svc, old)
	if svc.Spec.ClusterIP != "10.0.0.7" || !slices.Equal(svc.Spec.ClusterIPs, old.Spec.ClusterIPs) || svc.Spec.Ports[0].NodePort != 30001 {
		t.Errorf("an update that does not mention them loses addresses: %+v", svc.Spec)
	}
	svc.Spec.ClusterIP = "10.0.0.8"
	if got := complaints(r.Strategy.ValidateUpdate(svc, old)); !slices.Contains(got, "Invalid spec.clusterIPs[0]") {
		t.Errorf("the address may change: %v", got)
	}
}

func TestScaleSelector(t *testing.T) {
	r, obj := manifest(t, "deployment", "spec.replicas=4")
	spec, status, selector, err := r.Scale.Get(obj)
	if err != nil || spec != 4 || status != 0 || selector != "app=web" {
		t.Errorf("got %d %d %q %v", spec, status, selector, err)
	}
}
