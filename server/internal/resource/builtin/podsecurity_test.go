package builtin_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestValidateOS: a pod has nothing that its operating system does not have, and what it says for
// Windows is checked.
func TestValidateOS(t *testing.T) {
	const own, whole = "spec.containers.0.securityContext", "spec.securityContext"
	windows := func(at, options string) string { return at + "={windowsOptions: {" + options + "}}" }
	for _, tt := range []struct {
		edits []string
		want  []string
	}{
		{[]string{windows(own, "gmsaCredentialSpecName: A")}, []string{"Invalid " + "spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpecName"}},
		{[]string{windows(whole, "gmsaCredentialSpec: ''")}, []string{"Invalid spec.securityContext.windowsOptions.gmsaCredentialSpec"}},
		{[]string{windows(whole, "runAsUserName: ''")}, []string{"Invalid spec.securityContext.windowsOptions.runAsUserName"}},
		{[]string{windows(whole, `runAsUserName: 'a\b\c'`)}, []string{"Invalid spec.securityContext.windowsOptions.runAsUserName"}},
		{[]string{windows(whole, `runAsUserName: 'a b.c\.'`)}, []string{"Invalid spec.securityContext.windowsOptions.runAsUserName"}},
		{[]string{windows(whole, `runAsUserName: 'a.example\me'`)}, nil},
		{[]string{windows(whole, "hostProcess: true")}, []string{"Invalid spec.hostNetwork"}},
		{[]string{windows(own, "hostProcess: true"), "spec.hostNetwork=true"}, []string{"Invalid spec"}},
		{[]string{windows(whole, "hostProcess: true"), windows(own, "hostProcess: false"), "spec.hostNetwork=true"},
			[]string{"Invalid spec.containers[0].securityContext.windowsOptions.hostProcess", "Invalid spec"}},
		{[]string{windows(whole, "{}"), windows(own, "{}"), "spec.os={name: linux}"},
			[]string{"Forbidden spec.securityContext.windowsOptions", "Forbidden spec.containers[0].securityContext.windowsOptions"}},
		{[]string{whole + "={fsGroup: 1}", own + "={privileged: true}", "spec.hostPID=true", "spec.os={name: windows}"},
			[]string{"Forbidden spec.securityContext.fsGroup", "Forbidden spec.hostPID", "Forbidden spec.containers[0].securityContext.privileged"}},
		{[]string{own + "={procMount: Unmasked}"}, []string{"Invalid spec.containers[0].securityContext.procMount"}},
		{[]string{own + "={procMount: Unmasked}", "spec.hostUsers=false"}, nil},
	} {
		t.Run(strings.Join(tt.edits, " "), func(t *testing.T) {
			edits := make([]string, len(tt.edits))
			for i, edit := range tt.edits {
				edits[i] = strings.ReplaceAll(edit, "{{}}", "{}")
			}
			r, obj := manifest(t, "pod", edits...)
			if got := complaints(validateNew(r, obj)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestNewPods: what kube-apiserver fills in of a new pod, by what else it has.
func TestNewPods(t *testing.T) {
	of := func(edits ...string) *corev1.Pod {
		r, obj := manifest(t, "pod", edits...)
		r.Strategy.CompleteNew(obj)
		return obj.(*corev1.Pod)
	}
	if got := *of("spec.terminationGracePeriodSeconds=-5").Spec.TerminationGracePeriodSeconds; got != 1 {
		t.Errorf("a negative grace period became %d", got)
	}
	if c := of("spec.schedulingGates=[{name: a}]").Status.Conditions; len(c) != 1 || c[0].Type != corev1.PodScheduled || c[0].Reason != corev1.PodReasonSchedulingGated {
		t.Errorf("the conditions of a gated pod are %v", c)
	}
	containers := "spec.containers=[{name: a, image: a, resources: {requests: {cpu: 1}}}, {name: b, image: b, resources: {requests: {cpu: 2}}}]"
	shared := of(containers, "spec.initContainers-", "spec.resources={limits: {cpu: 5, memory: 1Gi}}").Spec.Resources
	if cpu, memory := shared.Requests.Cpu().String(), shared.Requests.Memory().String(); cpu != "3" || memory != "1Gi" {
		t.Errorf("the pod requests %s and %s", cpu, memory)
	}
	limited := "spec.containers=[{name: a, image: a, resources: {limits: {cpu: 1, memory: 1Gi}}}, {name: b, image: b, resources: {limits: {cpu: 2}}}]"
	for requested, want := range map[string]string{"1": "3", "4": "4"} {
		shared := of(limited, "spec.initContainers-", "spec.resources={requests: {cpu: "+requested+"}}").Spec.Resources
		if _, memory := shared.Limits["memory"]; shared.Limits.Cpu().String() != want || memory {
			t.Errorf("a pod that requests %s is limited to %v", requested, shared.Limits)
		}
	}
	if got := of("spec.resources={}").Status.QOSClass; got != corev1.PodQOSBurstable {
		t.Errorf("a pod whose own resources are empty is %s", got)
	}
	for _, annotation := range []string{"pod.alpha.kubernetes.io/init-containers", "pod.beta.kubernetes.io/init-container-statuses"} {
		if got := of("metadata.annotations={" + annotation + ": a, other: b}").Annotations; len(got) != 1 || got["other"] != "b" {
			t.Errorf("of the annotation of an old init container, a pod keeps %v", got)
		}
	}
	digest := "@sha256:" + strings.Repeat("0", 64)
	for image, want := range map[string]corev1.PullPolicy{
		"a": corev1.PullAlways, "a:1": corev1.PullIfNotPresent, "r.example:5000/a": corev1.PullAlways, "a:latest": corev1.PullAlways,
		"a@sha256:0": corev1.PullIfNotPresent, "A": corev1.PullIfNotPresent, "-a": corev1.PullIfNotPresent, "a//b:latest": corev1.PullIfNotPresent,
		"r.example:5000/a:latest" + digest: corev1.PullAlways, "a:1" + digest: corev1.PullIfNotPresent, "a" + digest: corev1.PullIfNotPresent,
		"a:latest" + digest + "0": corev1.PullIfNotPresent, "a:latest@sha999:0": corev1.PullIfNotPresent,
		strings.Repeat("a", 64): corev1.PullIfNotPresent, strings.Repeat("a", 63): corev1.PullAlways,
	} {
		if got := of("spec.containers.0.image="+image, "spec.containers.0.imagePullPolicy-").Spec.Containers[0].ImagePullPolicy; got != want {
			t.Errorf("%s is pulled %s, not %s", image, got, want)
		}
	}
}
