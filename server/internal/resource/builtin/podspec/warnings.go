package podspec

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// PodWarnings are what a client that makes a pod should know, though it is stored as it is.
func PodWarnings(pod *corev1.Pod) []string {
	return append(nameWarnings(pod.Name, "the Pod's hostname"), warningsOf(nil, &pod.ObjectMeta, &pod.Spec)...)
}

// WorkloadWarnings are those about the name and the template of a new workload, and about the
// template of one whose generation an update changes.
func WorkloadWarnings(obj, old metav1.Object, path *field.Path, template *corev1.PodTemplateSpec) []string {
	switch {
	case old == nil:
		return append(nameWarnings(obj.GetName(), "Pod names and hostnames"), TemplateWarnings(path, template)...)
	case obj.GetGeneration() != old.GetGeneration():
		return TemplateWarnings(path, template)
	}
	return nil
}

// TemplateWarnings are those about a template at a path.
func TemplateWarnings(path *field.Path, template *corev1.PodTemplateSpec) []string {
	if template == nil {
		return nil
	}
	return warningsOf(path, &template.ObjectMeta, &template.Spec)
}

func nameWarnings(name, use string) []string {
	if messages := validation.IsDNS1123Label(name); len(messages) > 0 {
		return []string{fmt.Sprintf("metadata.name: this is used in %s, which can result in surprising behavior; a DNS label is recommended: %v", use, messages)}
	}
	return nil
}

// warner collects warnings about a pod or a template, in kube-apiserver's order. It makes paths only
// for what it warns of: nearly every pod that is made is none of that.
type warner struct {
	path *field.Path // of the template; nil for a pod
	meta *metav1.ObjectMeta
	spec *corev1.PodSpec
	list []string
}

func warningsOf(path *field.Path, meta *metav1.ObjectMeta, spec *corev1.PodSpec) []string {
	w := &warner{path: path, meta: meta, spec: spec}
	w.nodes()
	w.spreading()
	w.annotations()
	w.volumes()
	w.names()
	w.fractions(w.at("overhead"), spec.Overhead)
	w.profiles()
	w.containers()
	w.ports()
	w.portNames()
	if seconds := spec.TerminationGracePeriodSeconds; seconds != nil && *seconds < 0 {
		w.add(w.at("terminationGracePeriodSeconds"), "must be >= 0; negative values are invalid and will be treated as 1")
	}
	w.affinity()
	w.addresses()
	return w.list
}

// maxWarnings is how many warnings are collected about one object, and maxCompared how many
// elements of a list the others are compared with. A request of 3 MB has room for 100,000 ports,
// and headers for a few KB of warnings.
const (
	maxWarnings = 200
	maxCompared = 100
)

// add adds a warning about the field at a path, unless there are enough.
func (w *warner) add(path func() *field.Path, text string, args ...any) {
	if len(w.list) < maxWarnings {
		w.list = append(w.list, path().String()+": "+fmt.Sprintf(text, args...))
	}
}

// addAll adds warnings, unless there are enough.
func (w *warner) addAll(warnings []string) {
	w.list = append(w.list, warnings[:min(len(warnings), maxWarnings-len(w.list))]...)
}

// at is the path of a field of the pod's spec.
func (w *warner) at(names ...string) func() *field.Path {
	return func() *field.Path { return w.path.Child("spec", names...) }
}

// item is the path of an element of a list in the pod's spec, or of a field of it.
func (w *warner) item(list string, i int, names ...string) func() *field.Path {
	return func() *field.Path {
		path := w.path.Child("spec", list).Index(i)
		for _, name := range names {
			path = path.Child(name)
		}
		return path
	}
}

func (w *warner) annotation(key string) func() *field.Path {
	return func() *field.Path { return w.path.Child("metadata", "annotations").Key(key) }
}

// nodes warns of labels of nodes that have another name now.
func (w *warner) nodes() {
	for _, key := range slices.Sorted(maps.Keys(w.spec.NodeSelector)) {
		if text := NodeLabelWarning(key); text != "" {
			w.add(func() *field.Path { return w.at("nodeSelector")().Key(key) }, "%s", text)
		}
	}
	if w.spec.Affinity == nil || w.spec.Affinity.NodeAffinity == nil {
		return
	}
	affinity, at := w.spec.Affinity.NodeAffinity, w.at("affinity", "nodeAffinity")()
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for i := range required.NodeSelectorTerms {
			path := at.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").Index(i)
			w.addAll(NodeTermWarnings(path, &required.NodeSelectorTerms[i], false))
		}
	}
	for i := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		path := at.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("preference")
		w.addAll(NodeTermWarnings(path, &affinity.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference, true))
	}
}

// selectsNone is about selectors that are left out, where an empty one would select everything.
const selectsNone = "a null labelSelector results in matching no pod"

func (w *warner) spreading() {
	for i, c := range w.spec.TopologySpreadConstraints {
		if text := NodeLabelWarning(c.TopologyKey); text != "" {
			w.add(w.item("topologySpreadConstraints", i, "topologyKey"), "%s is %s", c.TopologyKey, text)
		}
		if c.LabelSelector == nil {
			w.add(w.item("topologySpreadConstraints", i, "labelSelector"), selectsNone)
		}
	}
}

func (w *warner) affinity() {
	if w.spec.Affinity == nil {
		return
	}
	terms := func(name string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		at := w.at("affinity", name)
		for i := range required {
			if required[i].LabelSelector == nil {
				w.add(func() *field.Path {
					return at().Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i).Child("labelSelector")
				}, selectsNone)
			}
		}
		for i := range preferred {
			if preferred[i].PodAffinityTerm.LabelSelector == nil {
				w.add(func() *field.Path {
					return at().Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("podAffinityTerm", "labelSelector")
				}, selectsNone)
			}
		}
	}
	if a := w.spec.Affinity.PodAffinity; a != nil {
		terms("podAffinity", a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := w.spec.Affinity.PodAntiAffinity; a != nil {
		terms("podAntiAffinity", a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (w *warner) annotations() {
	for _, old := range []struct{ key, text string }{
		{"scheduler.alpha.kubernetes.io/critical-pod", `non-functional in v1.16+; use the "priorityClassName" field instead`},
		{"security.alpha.kubernetes.io/sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
		{"security.alpha.kubernetes.io/unsafe-sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
	} {
		if _, ok := w.meta.Annotations[old.key]; ok {
			w.add(w.annotation(old.key), "%s", old.text)
		}
	}
}

// names warns of hosts and secrets that are there twice, and of secrets without a name.
func (w *warner) names() {
	addresses := sets.New[string]()
	for i, alias := range w.spec.HostAliases {
		if repeats(addresses, alias.IP) {
			w.add(w.item("hostAliases", i, "ip"), "duplicate ip %q", alias.IP)
		}
	}
	secrets := sets.New[string]()
	for i, secret := range w.spec.ImagePullSecrets {
		if repeats(secrets, secret.Name) {
			w.add(w.item("imagePullSecrets", i, "name"), "duplicate name %q", secret.Name)
		}
	}
	for i, secret := range w.spec.ImagePullSecrets {
		if secret.Name == "" {
			w.add(w.item("imagePullSecrets", i, "name"), "invalid empty name %q", secret.Name)
		}
	}
}

// repeats notes a value, and reports whether it was there.
func repeats(values sets.Set[string], value string) bool {
	if values.Has(value) {
		return true
	}
	values.Insert(value)
	return false
}

// fractions warns of amounts that are no whole number of bytes.
func (w *warner) fractions(path func() *field.Path, amounts corev1.ResourceList) {
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if amount, ok := amounts[name]; ok && amount.MilliValue()%1000 != 0 {
			w.add(func() *field.Path { return path().Key(string(name)) }, "fractional byte value %q is invalid, must be an integer", amount.String())
		}
	}
}

// profiles warns of an annotation of the pod that a field has taken the place of.
func (w *warner) profiles() {
	if s := w.spec.SecurityContext; s != nil && s.SeccompProfile != nil {
		return
	}
	w.oldSeccomp(corev1.SeccompPodAnnotationKey)
}

func (w *warner) oldSeccomp(key string) {
	if _, ok := w.meta.Annotations[key]; ok {
		w.add(w.annotation(key), `non-functional in v1.27+; use the "seccompProfile" field instead`)
	}
}

// addresses warns of addresses that readers may understand differently.
func (w *warner) addresses() {
	if dns := w.spec.DNSConfig; dns != nil {
		for i, server := range dns.Nameservers {
			w.addAll(validation.GetWarningsForIP(w.at("dnsConfig", "nameservers")().Index(i), server))
		}
	}
	for i, alias := range w.spec.HostAliases {
		w.addAll(validation.GetWarningsForIP(w.item("hostAliases", i, "ip")(), alias.IP))
	}
}

// oldVolume says what became of the sources of volumes that Kubernetes has had.
func oldVolume(s *corev1.VolumeSource) (name, text string) {
	switch {
	case s.PhotonPersistentDisk != nil:
		return "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"
	case s.GitRepo != nil:
		return "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"
	case s.ScaleIO != nil:
		return "scaleIO", "deprecated in v1.16, non-functional in v1.22+"
	case s.Flocker != nil:
		return "flocker", "deprecated in v1.22, non-functional in v1.25+"
	case s.StorageOS != nil:
		return "storageOS", "deprecated in v1.22, non-functional in v1.25+"
	case s.Quobyte != nil:
		return "quobyte", "deprecated in v1.22, non-functional in v1.25+"
	case s.Glusterfs != nil:
		return "glusterfs", "deprecated in v1.25, non-functional in v1.26+"
	case s.CephFS != nil:
		return "cephfs", "deprecated in v1.28, non-functional in v1.31+"
	case s.RBD != nil:
		return "rbd", "deprecated in v1.28, non-functional in v1.31+"
	}
	return "", ""
}

func (w *warner) volumes() {
	for i := range w.spec.Volumes {
		v := &w.spec.Volumes[i]
		if name, text := oldVolume(&v.VolumeSource); text != "" {
			w.add(w.item("volumes", i, name), "%s", text)
		}
		if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
			path := w.item("volumes", i, "ephemeral", "volumeClaimTemplate", "spec")()
			w.addAll(ClaimWarnings(path, &v.Ephemeral.VolumeClaimTemplate.Spec))
		}
	}
	for i := range w.spec.Volumes {
		if len(w.list) < maxWarnings {
			w.addAll(overlapWarnings(&w.spec.Volumes[i]))
		}
	}
}
