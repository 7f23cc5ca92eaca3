package podspec

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

var (
	linuxSignals   = slices.Concat(namedSignals, realTimeSignals())
	windowsSignals = []corev1.Signal{corev1.SIGKILL, corev1.SIGTERM}
	namedSignals   = []corev1.Signal{
		corev1.SIGABRT, corev1.SIGALRM, corev1.SIGBUS, corev1.SIGCHLD, corev1.SIGCLD, corev1.SIGCONT, corev1.SIGFPE, corev1.SIGHUP,
		corev1.SIGILL, corev1.SIGINT, corev1.SIGIO, corev1.SIGIOT, corev1.SIGKILL, corev1.SIGPIPE, corev1.SIGPOLL, corev1.SIGPROF,
		corev1.SIGPWR, corev1.SIGQUIT, corev1.SIGSEGV, corev1.SIGSTKFLT, corev1.SIGSTOP, corev1.SIGSYS, corev1.SIGTERM, corev1.SIGTRAP,
		corev1.SIGTSTP, corev1.SIGTTIN, corev1.SIGTTOU, corev1.SIGURG, corev1.SIGUSR1, corev1.SIGUSR2, corev1.SIGVTALRM,
		corev1.SIGWINCH, corev1.SIGXCPU, corev1.SIGXFSZ,
	}
)

// realTimeSignals are those of Linux that have numbers in their names: SIGRTMIN+15 and SIGRTMAX-14
// are neighbours.
func realTimeSignals() []corev1.Signal {
	signals := []corev1.Signal{corev1.SIGRTMIN, corev1.SIGRTMAX}
	for i := 1; i <= 15; i++ {
		signals = append(signals, corev1.SIGRTMIN+corev1.Signal("+"+strconv.Itoa(i)))
	}
	for i := 1; i <= 14; i++ {
		signals = append(signals, corev1.SIGRTMAX+corev1.Signal("-"+strconv.Itoa(i)))
	}
	return signals
}

// validateStopSignal: which signals there are depends on the pod's operating system, which the pod
// must name.
func validateStopSignal(at *field.Path, signal corev1.Signal, os *corev1.PodOS) field.ErrorList {
	switch {
	case os == nil:
		return field.ErrorList{field.Forbidden(at, "may not be set for containers with empty `spec.os.name`")}
	case os.Name == corev1.Windows:
		return validate.Supported(at, signal, windowsSignals...)
	case os.Name == corev1.Linux:
		return validate.Supported(at, signal, linuxSignals...)
	}
	return nil
}
