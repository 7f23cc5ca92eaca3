package kubelet

import (
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// program is what a simulated container does.
type program struct {
	// runs is for how long; negative: without an end.
	runs time.Duration
	code int32 // what it exits with
}

// endless is the program of a container of which nothing says that it ends.
var endless = program{runs: -1}

// programs is what a pod says of those of all its containers. It is read once: annotations and owners
// may be as long as the containers are many.
type programs struct {
	restarts bool
	code     *int32         // what they exit with; nil: it does not say
	runs     *time.Duration // for how long they run; nil: it does not say
	job      *time.Duration // for how long those of a Job's pod run that do not say it; nil: it is none
}

func (o *Options) programsOf(pod *corev1.Pod) *programs {
	p := &programs{restarts: alwaysRestarts(pod)}
	if p.restarts {
		return p // the rest is about containers that may end for good
	}
	if code, given := annotatedCode(pod); given {
		p.code = &code
	}
	if d, err := time.ParseDuration(pod.Annotations[AnnotationRunFor]); err == nil && d >= 0 {
		p.runs = &d
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "Job" {
		p.job = &o.RunFor
	}
	return p
}

// of returns what a container of the pod does: what annotations say, or else the
// command where that is plain. Of other containers those of a Job's pod run for
// Options.RunFor, init containers end at once, and all others, ephemeral ones among them, run without an end.
func (p *programs) of(c *corev1.Container, as role) program {
	asked, plain := commandProgram(slices.Concat(c.Command, c.Args))
	init := as == roleInit
	switch {
	case as == roleEphemeral && !plain:
		return endless
	case as == roleEphemeral, init && plain, p.restarts && plain:
		return asked
	case sidecar(c), p.restarts && !init:
		return endless
	case init:
		return program{}
	}
	if p.code != nil {
		asked.code = *p.code
	}
	switch {
	case p.runs != nil:
		asked.runs = *p.runs
	case plain:
	case p.job != nil:
		asked.runs = *p.job
	default:
		return endless
	}
	return asked
}

// alwaysRestarts reports whether the pod's containers are started again however they end.
func alwaysRestarts(pod *corev1.Pod) bool {
	return pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == ""
}

// sidecar reports whether an init container goes on running beside the others (KEP-753).
func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// annotatedCode is what annotations say that the pod's containers exit with: the code for
// its index if it is a pod of an Indexed Job that has one, or else the one for all pods.
func annotatedCode(pod *corev1.Pod) (code int32, given bool) {
	text := pod.Annotations[AnnotationExitCode]
	if index, ok := pod.Annotations[batchv1.JobCompletionIndexAnnotation]; ok {
		for entry := range strings.SplitSeq(pod.Annotations[AnnotationExitCodeOfIndex], ",") {
			if of, code, ok := strings.Cut(strings.TrimSpace(entry), "="); ok && of == index {
				text = code
			}
		}
	}
	parsed, err := strconv.ParseInt(text, 10, 32)
	return int32(parsed), err == nil
}

// commandProgram returns what a command does, if that is plain: sleep, true, false, or a
// shell whose script is made of these, exit, echo and loops without an end. What a script
// does beside them, nothing here can know.
func commandProgram(argv []string) (p program, plain bool) {
	if len(argv) == 0 {
		return program{}, false
	}
	switch base(argv[0]) {
	case "sh", "bash", "ash", "dash":
		if len(argv) < 3 || !strings.HasPrefix(argv[1], "-") || !strings.HasSuffix(argv[1], "c") {
			return program{}, false
		}
		return scriptProgram(argv[2])
	}
	return wordsProgram(argv)
}

// scriptProgram returns what a script does, if each of its commands is plain.
func scriptProgram(script string) (p program, plain bool) {
	if strings.ContainsAny(script, "$`|<>(){}\\") {
		return program{}, false
	}
	script = strings.NewReplacer("&&", "\x00", "\n", ";").Replace(script)
	if strings.Contains(script, "&") {
		return program{}, false // something in the background
	}
	var total program
	skip := false // what follows && after a failure
	for part := range strings.SplitSeq(strings.ReplaceAll(script, "\x00", ";\x00"), ";") {
		part, conditional := strings.CutPrefix(part, "\x00")
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		if words[0] == "while" && len(words) == 2 && (words[1] == "true" || words[1] == ":") {
			return endless, true // break is no plain command
		}
		if skip = skip && conditional; skip {
			continue
		}
		if words[0] == "exit" {
			return total.exits(words[1:])
		}
		p, plain := wordsProgram(words)
		if !plain {
			return program{}, false
		}
		if p.runs < 0 {
			return endless, true
		}
		total.runs += p.runs
		total.code = p.code
		skip = p.code != 0
	}
	return total, true
}

// exits ends a script with what exit is given, or else with the code of the command before.
func (p program) exits(args []string) (program, bool) {
	if len(args) == 0 {
		return p, true
	}
	code, err := strconv.ParseUint(args[0], 10, 8)
	p.code = int32(code)
	return p, err == nil && len(args) == 1
}

// wordsProgram returns what one command does, if it is plain.
func wordsProgram(words []string) (p program, plain bool) {
	if words[0] == "exec" && len(words) > 1 {
		words = words[1:]
	}
	switch base(words[0]) {
	case "true", ":", "echo":
		return program{}, true
	case "false":
		return program{code: 1}, true
	case "sleep":
		return sleepProgram(words[1:])
	}
	return program{}, false
}

// sleepProgram returns what sleep does with its arguments, whose sum counts.
func sleepProgram(args []string) (p program, plain bool) {
	for _, arg := range args {
		if arg == "infinity" || arg == "inf" {
			return endless, true
		}
		unit := time.Second
		if n := len(arg) - 1; n > 0 {
			if other, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[arg[n]]; ok {
				unit, arg = other, arg[:n]
			}
		}
		n, err := strconv.ParseFloat(arg, 64)
		if err != nil || n < 0 {
			return program{}, false
		}
		if n*float64(unit) > float64(longest) {
			return endless, true
		}
		p.runs += time.Duration(n * float64(unit))
	}
	return p, len(args) > 0
}

// longest is a sleep beyond which a container counts as one that does not end.
const longest = 10 * 365 * 24 * time.Hour

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
