package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func validateProbes(path *field.Path, c *corev1.Container) field.ErrorList {
	errs := validateProbe(path.Child("livenessProbe"), c.LivenessProbe, true)
	errs = append(errs, validateProbe(path.Child("readinessProbe"), c.ReadinessProbe, false)...)
	return append(errs, validateProbe(path.Child("startupProbe"), c.StartupProbe, true)...)
}

// validateProbe checks a probe. once: a single success must be enough, since
// the container is restarted on failure.
func validateProbe(path *field.Path, p *corev1.Probe, once bool) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := validateHandler(path, probeHandler(p.ProbeHandler))
	for _, number := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", p.InitialDelaySeconds}, {"timeoutSeconds", p.TimeoutSeconds}, {"periodSeconds", p.PeriodSeconds},
		{"successThreshold", p.SuccessThreshold}, {"failureThreshold", p.FailureThreshold},
	} {
		if number.value < 0 {
			errs = append(errs, validate.NotNegative(path.Child(number.name), &number.value)...)
		}
	}
	if s := p.TerminationGracePeriodSeconds; s != nil && *s <= 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *s, "must be greater than 0"))
	}
	if once && p.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(path.Child("successThreshold"), p.SuccessThreshold, "must be 1"))
	}
	if !once && p.TerminationGracePeriodSeconds != nil {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *p.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
	}
	return errs
}

// validateLifecycle checks the hooks of a container, and the signal that ends it.
func validateLifecycle(path *field.Path, c *corev1.Container, spec *corev1.PodSpec) field.ErrorList {
	if c.Lifecycle == nil {
		return nil
	}
	var errs field.ErrorList
	if h := c.Lifecycle.PostStart; h != nil {
		errs = append(errs, validateHandler(path.Child("lifecycle", "postStart"), lifecycleHandler(*h, spec.TerminationGracePeriodSeconds))...)
	}
	if h := c.Lifecycle.PreStop; h != nil {
		errs = append(errs, validateHandler(path.Child("lifecycle", "preStop"), lifecycleHandler(*h, spec.TerminationGracePeriodSeconds))...)
	}
	if signal := c.Lifecycle.StopSignal; signal != nil {
		errs = append(errs, validateStopSignal(path.Child("lifecycle", "stopSignal"), *signal, spec.OS)...)
	}
	return errs
}

// handler is what probes and lifecycle hooks have in common.
type handler struct {
	exec    *corev1.ExecAction
	httpGet *corev1.HTTPGetAction
	tcp     *corev1.TCPSocketAction
	grpc    *corev1.GRPCAction
	sleep   *corev1.SleepAction
	grace   *int64 // how long a pod with a hook that sleeps has to end; nil: unknown
}

func probeHandler(h corev1.ProbeHandler) handler {
	return handler{exec: h.Exec, httpGet: h.HTTPGet, tcp: h.TCPSocket, grpc: h.GRPC}
}

func lifecycleHandler(h corev1.LifecycleHandler, grace *int64) handler {
	return handler{exec: h.Exec, httpGet: h.HTTPGet, tcp: h.TCPSocket, sleep: h.Sleep, grace: grace}
}

// validateHandler checks that there is exactly one action and that it is
// complete.
func validateHandler(path *field.Path, h handler) field.ErrorList {
	var errs field.ErrorList
	actions := 0
	action := func(name string, present bool, check func(at *field.Path) field.ErrorList) {
		if !present {
			return
		}
		if actions++; actions > 1 {
			errs = append(errs, field.Forbidden(path.Child(name), "may not specify more than 1 handler type"))
			return
		}
		errs = append(errs, check(path.Child(name))...)
	}
	action("exec", h.exec != nil, func(at *field.Path) field.ErrorList {
		if len(h.exec.Command) == 0 {
			return field.ErrorList{field.Required(at.Child("command"), "")}
		}
		return nil
	})
	action("httpGet", h.httpGet != nil, func(at *field.Path) field.ErrorList {
		errs := validate.Required(at.Child("path"), h.httpGet.Path)
		errs = append(errs, validate.PortReference(at.Child("port"), h.httpGet.Port)...)
		errs = append(errs, validate.Supported(at.Child("scheme"), h.httpGet.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
		for _, header := range h.httpGet.HTTPHeaders {
			errs = append(errs, validate.Invalid(at.Child("httpHeaders"), header.Name, validation.IsHTTPHeaderName(header.Name))...)
		}
		return append(errs, validateProtocol(at, h.httpGet)...)
	})
	action("tcpSocket", h.tcp != nil, func(at *field.Path) field.ErrorList {
		return validate.PortReference(at.Child("port"), h.tcp.Port)
	})
	action("grpc", h.grpc != nil, func(at *field.Path) field.ErrorList {
		errs := validate.PortNumber(at.Child("port"), h.grpc.Port)
		if mode := h.grpc.Mode; mode != nil {
			errs = append(errs, validate.Supported(at.Child("mode"), *mode, corev1.GRPCProbeModePlaintext, corev1.GRPCProbeModeTLS)...)
		}
		return errs
	})
	action("sleep", h.sleep != nil, func(at *field.Path) field.ErrorList {
		if h.grace == nil || h.sleep.Seconds >= 0 && h.sleep.Seconds <= *h.grace {
			return nil
		}
		return field.ErrorList{field.Invalid(at, h.sleep.Seconds, fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", *h.grace))}
	})
	if actions == 0 {
		errs = append(errs, field.Required(path, "must specify a handler type"))
	}
	return errs
}

// validateProtocol: HTTP/2 is only spoken without TLS (H2C), and to the pod itself.
func validateProtocol(path *field.Path, get *corev1.HTTPGetAction) field.ErrorList {
	if get.Protocol == nil {
		return nil
	}
	at := path.Child("protocol")
	if errs := validate.Supported(at, *get.Protocol, corev1.HTTPProtocolHTTP1, corev1.HTTPProtocolHTTP2); len(errs) > 0 || *get.Protocol != corev1.HTTPProtocolHTTP2 {
		return errs
	}
	switch {
	case get.Scheme != corev1.URISchemeHTTP:
		return field.ErrorList{field.Invalid(at, *get.Protocol, "is only supported with HTTP (H2C)")}
	case get.Host != "":
		return field.ErrorList{field.Invalid(path.Child("host"), get.Host, "must be empty when `protocol` is \"HTTP2\"")}
	}
	return nil
}
