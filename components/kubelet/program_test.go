package kubelet

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestPlainCommands(t *testing.T) {
	sh := func(script string) []string { return []string{"/bin/sh", "-c", script} }
	for _, c := range []struct {
		argv []string
		want string // "" if the command is not plain
	}{
		{nil, ""},
		{[]string{"/server", "--port=80"}, ""},
		{[]string{"sleep", "90"}, "1m30s, 0"},
		{[]string{"/bin/sleep", "1.5m", "1"}, "1m31s, 0"},
		{[]string{"sleep", "infinity"}, "endless"},
		{[]string{"sleep", "9999999999"}, "endless"},
		{[]string{"sleep", "1e300d"}, "endless"},
		{[]string{"sleep", "soon"}, ""},
		{[]string{"sleep", "-1"}, ""},
		{[]string{"sleep"}, ""},
		{[]string{"true"}, "0s, 0"},
		{[]string{"/bin/false"}, "0s, 1"},
		{[]string{"echo", "$(HOME)"}, "0s, 0"},
		{sh("exit 3"), "0s, 3"},
		{sh("echo starting; sleep 5 && exit 7"), "5s, 7"},
		{sh("sleep 2\nfalse"), "2s, 1"},
		{sh("false; sleep 2"), "2s, 0"},
		{sh("false && sleep 2; exit"), "0s, 1"},
		{sh("false && sleep 2 && sleep 3; sleep 1"), "1s, 0"},
		{sh("exec sleep 3600"), "1h0m0s, 0"},
		{sh("while true; do date; sleep 1; done"), "endless"},
		{[]string{"bash", "-ec", "sleep 1"}, "1s, 0"},
		{sh("exit 300"), ""},
		{sh("exit $CODE"), ""},
		{sh("sleep 5 &"), ""},
		{sh("sleep 5 || true"), ""},
		{sh("date; sleep 5"), ""},
		{sh("echo a > /tmp/b"), ""},
		{[]string{"sh"}, ""},
		{[]string{"sh", "script.sh", "x"}, ""},
		{sh(""), "0s, 0"},
	} {
		got := ""
		switch p, plain := commandProgram(c.argv); {
		case plain && p.runs < 0:
			got = "endless"
		case plain:
			got = fmt.Sprintf("%v, %d", p.runs, p.code)
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.argv, got, c.want)
		}
	}
}

func FuzzCommands(f *testing.F) {
	for _, script := range []string{"", "sleep 5 && exit 3", "exec", "while true", "&&;&&\n", "exit", "sleep 1d2"} {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script string) {
		for _, argv := range [][]string{{"sh", "-c", script}, {script}, {"sleep", script}, {script, script}} {
			p, plain := commandProgram(argv)
			if !plain && p != (program{}) || p.code < 0 || p.runs > 4*longest {
				t.Errorf("%q: %+v, %v", argv, p, plain)
			}
		}
	})
}

// Annotations come before commands, and both before what a pod's owner says.
func TestProgramOfContainers(t *testing.T) {
	annotated := func(annotations map[string]string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { ofJob(pod); pod.Annotations = annotations }
	}
	opts := options(t)
	for name, c := range map[string]struct {
		change  func(*corev1.Pod)
		command []string
		as      role
		want    program
	}{
		"a pod of its own":          {nil, nil, roleMain, endless},
		"a Job's":                   {ofJob, nil, roleMain, program{runs: 5 * time.Second}},
		"a Job's command":           {ofJob, []string{"sleep", "1"}, roleMain, program{runs: time.Second}},
		"a code":                    {annotated(map[string]string{AnnotationExitCode: "4"}), nil, roleMain, program{5 * time.Second, 4}},
		"a code and a command":      {annotated(map[string]string{AnnotationExitCode: "4"}), []string{"sleep", "1"}, roleMain, program{time.Second, 4}},
		"a time and a command":      {annotated(map[string]string{AnnotationRunFor: "9s"}), []string{"false"}, roleMain, program{9 * time.Second, 1}},
		"an init container":         {annotated(map[string]string{AnnotationRunFor: "9s", AnnotationExitCode: "4"}), nil, roleInit, program{}},
		"an init container's sleep": {nil, []string{"sleep", "1"}, roleInit, program{runs: time.Second}},
		"a service":                 {func(pod *corev1.Pod) { pod.Spec.RestartPolicy = "" }, nil, roleMain, endless},
		"a service's command":       {func(pod *corev1.Pod) { pod.Spec.RestartPolicy = "" }, []string{"false"}, roleMain, program{code: 1}},
		"a service's annotation": {func(pod *corev1.Pod) {
			pod.Spec.RestartPolicy, pod.Annotations = "", map[string]string{AnnotationRunFor: "9s"}
		}, nil, roleMain, endless},
		"an ephemeral container":           {annotated(map[string]string{AnnotationRunFor: "9s"}), nil, roleEphemeral, endless},
		"an ephemeral container's command": {annotated(map[string]string{AnnotationRunFor: "9s"}), []string{"false"}, roleEphemeral, program{code: 1}},
	} {
		pod := running(c.change)
		pod.Spec.Containers[0].Command = c.command
		if got := opts.programsOf(pod).of(&pod.Spec.Containers[0], c.as); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestImagesThatCannotExist(t *testing.T) {
	for image, want := range map[string]bool{
		"nginx": true, "nginx:1.27": true, "registry.example.com:5000/a/b:v1": true, "nginx@sha256:404": true, "a/404:latest": true,
		"invalid.registry.k8s.io/invalid/alpine:3.1": false, "registry.invalid:5000/a": false, "webserver:404": false, "a.example.com:80/x/y:nonexistent": false,
	} {
		if got := pulls(&corev1.Pod{}, image); got != want {
			t.Errorf("%s: pulls %v", image, got)
		}
	}
	pod := running(func(pod *corev1.Pod) { pod.Annotations = map[string]string{AnnotationPullFails: "true"} })
	if pulls(pod, "nginx") {
		t.Error("an annotation was not followed")
	}
}
