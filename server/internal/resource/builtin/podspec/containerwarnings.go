package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// eachContainer calls f with every container, and with the list in which it stands and its index there.
func eachContainer(spec *corev1.PodSpec, f func(list string, i int, c *corev1.Container)) {
	for i := range spec.InitContainers {
		f("initContainers", i, &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		f("containers", i, &spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		f("ephemeralContainers", i, (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
}

func (w *warner) containers() {
	eachContainer(w.spec, func(list string, i int, c *corev1.Container) {
		w.containerProfiles(c)
		// By resource, as kube-apiserver does, and not by list.
		for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			for _, amounts := range []struct {
				name string
				list corev1.ResourceList
			}{{"limits", c.Resources.Limits}, {"requests", c.Resources.Requests}} {
				if amount, ok := amounts.list[name]; ok {
					w.fractions(w.item(list, i, "resources", amounts.name), corev1.ResourceList{name: amount})
				}
			}
		}
		w.env(list, i, c.Env)
	})
}

// containerProfiles warns of annotations of a container that fields have taken the place of.
func (w *warner) containerProfiles(c *corev1.Container) {
	s := c.SecurityContext
	if s == nil || s.SeccompProfile == nil {
		w.oldSeccomp(corev1.SeccompContainerAnnotationKeyPrefix + c.Name)
	}
	key := corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + c.Name
	annotation, ok := w.meta.Annotations[key]
	if w.path == nil || !ok || s != nil && s.AppArmorProfile != nil {
		return
	}
	var ofPod *corev1.AppArmorProfile
	if w.spec.SecurityContext != nil {
		ofPod = w.spec.SecurityContext.AppArmorProfile
	}
	if ofPod == nil || !equality.Semantic.DeepEqual(ofPod, annotatedAppArmor(annotation)) {
		w.add(w.annotation(key), `deprecated since v1.30; use the "appArmorProfile" field instead`)
	}
}

// annotatedAppArmor is the profile that an annotation names; nil if it names none.
func annotatedAppArmor(annotation string) *corev1.AppArmorProfile {
	switch name, local := strings.CutPrefix(annotation, corev1.DeprecatedAppArmorBetaProfileNamePrefix); {
	case annotation == corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	case annotation == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case local && name != "":
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
	}
	return nil
}

// env warns of a variable that replaces one before it, unless it has that one in its value.
func (w *warner) env(list string, i int, env []corev1.EnvVar) {
	if len(env) < 2 {
		return
	}
	names := make(sets.Set[string], len(env))
	for j, v := range env {
		if !repeats(names, v.Name) {
			continue
		}
		if before := "$(" + v.Name + ")"; v.ValueFrom != nil || v.Value == before || !strings.Contains(v.Value, before) {
			w.add(func() *field.Path { return w.item(list, i, "env")().Index(j) }, "hides previous definition of %q, which may be dropped when using apply", v.Name)
		}
	}
}

// port is a port of a container, and where it stands.
type port struct {
	*corev1.ContainerPort
	list             string
	container, index int
}

func (w *warner) portPath(p port) func() *field.Path {
	return func() *field.Path { return w.item(p.list, p.container, "ports")().Index(p.index) }
}

func (w *warner) eachPort(f func(p port)) {
	eachContainer(w.spec, func(list string, i int, c *corev1.Container) {
		for j := range c.Ports {
			f(port{&c.Ports[j], list, i, j})
		}
	})
}

// ports warns of ports of the pod that several containers have, or one has twice.
func (w *warner) ports() {
	type number struct {
		port     int32
		protocol corev1.Protocol
	}
	var before map[number][]port
	w.eachPort(func(p port) {
		if p.HostIP != "" && p.HostPort == 0 {
			w.add(w.portPath(p), "hostIP set without hostPort: %+v", *p.ContainerPort)
		}
		at := number{p.ContainerPort.ContainerPort, p.Protocol}
		for _, other := range before[at] {
			if text := samePort(p.ContainerPort, other.ContainerPort); text != "" {
				w.add(w.portPath(p), "%s with %s", text, w.portPath(other)())
			}
		}
		if before == nil {
			before = map[number][]port{}
		}
		if len(before[at]) < maxCompared {
			before[at] = append(before[at], p)
		}
	})
}

// samePort says in what two ports are the same; "" if in nothing that matters.
func samePort(p, other *corev1.ContainerPort) string {
	switch {
	case p.ContainerPort != other.ContainerPort || p.Protocol != other.Protocol:
		return ""
	case p.HostIP == other.HostIP && p.HostPort == other.HostPort:
		return "duplicate port definition"
	case p.HostPort == 0 || other.HostPort == 0:
		return "overlapping port definition"
	case p.HostPort == other.HostPort && (p.HostIP == "") != (other.HostIP == ""):
		return "dangerously ambiguous port definition"
	}
	return ""
}

// portNames warns of names of ports that several have: by such a name, the first is meant.
func (w *warner) portNames() {
	named := map[string]port{}
	w.eachPort(func(p port) {
		if p.Name == "" {
			return
		}
		other, ok := named[p.Name]
		if !ok {
			named[p.Name] = p
			return
		}
		first := w.portPath(other)()
		w.add(w.portPath(p), "duplicate port name %q with %s, services and probes that select ports by name will use %s", p.Name, first, first)
	})
}
