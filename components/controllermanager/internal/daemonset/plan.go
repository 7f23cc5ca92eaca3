package daemonset

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
	"github.com/levelwire/levelwire/internal/nodeaffinity"
	"github.com/levelwire/levelwire/internal/tolerations"
)

// ownTolerations are those that every daemon's pod has: it stays on nodes that are in
// trouble, and comes to those that other pods may not come to.
func ownTolerations(hostNetwork bool) []corev1.Toleration {
	exists := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	list := []corev1.Toleration{
		exists(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule),
	}
	if hostNetwork {
		list = append(list, exists(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule))
	}
	return list
}

// prepare makes the template's pod one for a node.
func prepare(pod *corev1.Pod, node, revision string) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] = revision
	if node != "" {
		pin(&pod.Spec, node)
	}
	for _, t := range ownTolerations(pod.Spec.HostNetwork) {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(o corev1.Toleration) bool { return o.MatchToleration(&t) }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, t)
		}
	}
}

// pin makes the node's name a condition of every term of the pod's required
// node affinity.
func pin(spec *corev1.PodSpec, node string) {
	field := []corev1.NodeSelectorRequirement{{
		Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
	}}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := spec.Affinity.NodeAffinity
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil || len(affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms) == 0 {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: field}}}
		return
	}
	terms := affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchFields = field
	}
}

// nodeOf is the node that a pod is on, or is pinned to.
func nodeOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil || pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// site is a node, with whether it should get the set's pod, and whether it may keep one that it has.
type site struct {
	node      *corev1.Node
	run, keep bool
}

// sitesOf looks at all nodes. The template may be large: it is copied and read once.
func sitesOf(set *appsv1.DaemonSet, nodes []*corev1.Node) []site {
	pod := &corev1.Pod{Spec: *set.Spec.Template.Spec.DeepCopy()}
	prepare(pod, "", "")
	required, tolerated := nodeaffinity.RequiredBy(&pod.Spec), tolerations.Of(pod.Spec.Tolerations)
	sites := make([]site, 0, len(nodes))
	for _, node := range nodes {
		s := site{node: node}
		if name := pod.Spec.NodeName; (name == "" || name == node.Name) && required.Matches(node) {
			s.keep = toleratesAll(&tolerated, node, corev1.TaintEffectNoExecute)
			s.run = s.keep && toleratesAll(&tolerated, node, corev1.TaintEffectNoSchedule)
		}
		sites = append(sites, s)
	}
	return sites
}

// toleratesAll reports whether a pod tolerates all taints of a node with an effect.
func toleratesAll(tolerated *tolerations.Index, node *corev1.Node, effect corev1.TaintEffect) bool {
	return !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect == effect && !tolerated.Tolerate(&taint)
	})
}

// plan is what one reconciliation does.
type plan struct {
	create []string // names of nodes
	delete []*corev1.Pod
}

// byNode groups the pods by their node. Pods of nowhere are under "".
func byNode(owned []*corev1.Pod) map[string][]*corev1.Pod {
	groups := map[string][]*corev1.Pod{}
	for _, pod := range owned {
		groups[nodeOf(pod)] = append(groups[nodeOf(pod)], pod)
	}
	for _, group := range groups {
		slices.SortFunc(group, func(a, b *corev1.Pod) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
	}
	return groups
}

// place says where pods are missing and which are too many: one pod stays on
// a node, the oldest that lives; ended ones make room for another. In an update
// that surges, one of the old revisions may live beside one of the new.
func place(set *appsv1.DaemonSet, sites []site, groups map[string][]*corev1.Pod, revision string) plan {
	var p plan
	for _, site := range sites {
		stopping := 0
		living := map[bool]int{} // by whether they are new, if that matters
		for _, pod := range groups[site.node.Name] {
			fresh := surges(set) && current(pod, revision)
			switch {
			case pod.DeletionTimestamp != nil:
				stopping++
			case !pods.Active(pod) || !site.keep || living[fresh] > 0:
				p.delete = append(p.delete, pod)
				stopping++
			default:
				living[fresh]++
			}
		}
		if site.run && len(living) == 0 && stopping == 0 {
			p.create = append(p.create, site.node.Name)
		}
	}
	slices.Sort(p.create)
	return p
}

// outdated returns pods of old revisions to delete in a rolling update: those
// that are not available first, the others as long as no more than
// maxUnavailable nodes go without.
func outdated(set *appsv1.DaemonSet, sites []site, groups map[string][]*corev1.Pod, revision string, now time.Time) ([]*corev1.Pod, error) {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return nil, nil
	}
	var wanted, unavailable int
	var dead, alive []*corev1.Pod
	for _, site := range sites {
		if !site.run {
			continue
		}
		wanted++
		served := false
		for _, pod := range groups[site.node.Name] {
			available, _ := pods.Available(pod, set.Spec.MinReadySeconds, now)
			available = available && pods.Active(pod)
			served = served || available
			old := !current(pod, revision) && pods.Active(pod)
			if old && available {
				alive = append(alive, pod)
			} else if old {
				dead = append(dead, pod)
			}
		}
		if !served {
			unavailable++
		}
	}
	most := intstr.FromInt32(1)
	if rolling != nil && rolling.MaxUnavailable != nil {
		most = *rolling.MaxUnavailable
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(&most, wanted, true)
	if err != nil {
		return nil, fmt.Errorf("maxUnavailable: %w", err)
	}
	slices.SortFunc(alive, func(a, b *corev1.Pod) int { return cmp.Compare(nodeOf(a), nodeOf(b)) })
	return append(dead, alive[:min(max(max(limit, 1)-unavailable, 0), len(alive))]...), nil
}
