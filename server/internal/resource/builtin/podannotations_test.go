package builtin_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestPodAnnotations: annotations that mean something are checked in pods and in templates, and so is that they say
// what the fields say.
func TestPodAnnotations(t *testing.T) {
	const (
		one      = "spec.containers=[{name: c, image: i}]"
		none     = "spec.volumes=[]"
		inits    = "spec.initContainers=[]"
		at       = "metadata.annotations"
		annotate = "metadata.annotations="
		apparmor = "container.apparmor.security.beta.kubernetes.io/"
		seccomp  = "container.seccomp.security.alpha.kubernetes.io/"
		ofPod    = "seccomp.security.alpha.kubernetes.io/pod"
		cost     = "controller.kubernetes.io/pod-deletion-cost"
	)
	for _, tt := range []struct {
		edits []string
		want  []string
	}{
		{[]string{annotate + "{" + cost + ": '008', kubernetes.io/config.mirror: x}"}, []string{
			at + `[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set`, at + `[` + cost + `]: Invalid value: "008": must be a 32bit integer`,
		}},
		{[]string{annotate + "{" + cost + ": '-5'}"}, nil},
		{[]string{annotate + "{" + ofPod + ": none, " + seccomp + "c: localhost/../x, " + apparmor + "d: runtime/default, " + apparmor + "c: mine}"}, []string{
			at + "." + ofPod + `: Invalid value: "none": must be a valid seccomp profile`, at + "." + seccomp + `c: Invalid value: "../x": must not contain '..'`,
			at + "[" + apparmor + `c]: Invalid value: "mine": invalid AppArmor profile name: "mine"`, at + "[" + apparmor + `d]: Invalid value: "d": container not found`,
		}},
		{[]string{annotate + "{scheduler.alpha.kubernetes.io/tolerations: '[{\"operator\": \"Near\", \"key\": \"a\"}]'}"},
			[]string{at + `.scheduler.alpha.kubernetes.io/tolerations[0].operator: Unsupported value: "Near": supported values: "Equal", "Exists"`}},
		{[]string{annotate + "{" + ofPod + ": unconfined, " + seccomp + "c: localhost/a, " + apparmor + "c: localhost/a}",
			"spec.securityContext={seccompProfile: {type: RuntimeDefault}, appArmorProfile: {type: Unconfined}}", "spec.containers=[{name: c, image: i, securityContext: {seccompProfile: {type: Localhost, localhostProfile: b}}}]"}, []string{
			"spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match",
			"spec.containers[0].securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in annotation and field must match",
			"spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field must match",
		}},
		{[]string{annotate + "{" + ofPod + ": docker/default, " + apparmor + "c: localhost/a}", "spec.securityContext={seccompProfile: {type: RuntimeDefault}, appArmorProfile: {type: Localhost, localhostProfile: a}}"}, nil},
	} {
		edits := append([]string{one, none, inits}, tt.edits...)
		checkRefusals(t, []refusal{{"pod", edits, tt.want}})
	}
}

// TestAnnotationsOfTemplates: those of a template stand at its own path, which kube-apiserver writes without metadata.
func TestAnnotationsOfTemplates(t *testing.T) {
	const template = "spec.template."
	checkRefusals(t, []refusal{{"deployment", []string{
		template + "metadata.annotations={controller.kubernetes.io/pod-deletion-cost: x, seccomp.security.alpha.kubernetes.io/pod: unconfined}",
		template + "spec.securityContext={seccompProfile: {type: RuntimeDefault}}",
	}, []string{
		template + `annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "x": must be a 32bit integer`,
		template + "spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match",
	}}})
}

// TestChangesOfPodAnnotations: some cannot be changed, and a cost that was wrong may stay.
func TestChangesOfPodAnnotations(t *testing.T) {
	const cost, mirror, profile = "controller.kubernetes.io/pod-deletion-cost", "kubernetes.io/config.mirror", "container.apparmor.security.beta.kubernetes.io/"
	r, obj := manifest(t, "pod", "spec.nodeName=node")
	old := obj.(*corev1.Pod)
	own := profile + old.Spec.Containers[0].Name
	for _, tt := range []struct {
		before, after map[string]string
		want          []string
	}{
		{map[string]string{cost: "x"}, map[string]string{cost: "y"}, nil},
		{nil, map[string]string{cost: "y"}, []string{"Invalid metadata.annotations[" + cost + "]", "Invalid metadata.annotations[" + cost + "]"}},
		{map[string]string{mirror: "a"}, map[string]string{mirror: "a"}, nil},
		{map[string]string{mirror: "a", own: "unconfined"}, nil, []string{"Forbidden metadata.annotations[" + own + "]", "Forbidden metadata.annotations[" + mirror + "]"}},
		{nil, map[string]string{mirror: "a", own: "unconfined"}, []string{"Forbidden metadata.annotations[" + own + "]", "Forbidden metadata.annotations[" + mirror + "]"}},
	} {
		before, after := old.DeepCopy(), old.DeepCopy()
		before.Annotations, after.Annotations = tt.before, tt.after
		if got := complaints(r.Strategy.ValidateUpdate(after, before)); !slices.Equal(got, tt.want) {
			t.Errorf("%v after %v: %v, not %v", tt.after, tt.before, got, tt.want)
		}
	}
}
