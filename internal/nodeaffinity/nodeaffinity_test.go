package nodeaffinity_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	peer "k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/levelwire/levelwire/internal/nodeaffinity"
)

// TestAsKubernetes compares with Kubernetes' package: random requirements, valid ones and others, of few keys and values.
func TestAsKubernetes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	matched, preferred := 0, 0
	for range 20_000 {
		spec, node := randomSpec(r), randomNode(r)
		theirs := peer.GetRequiredNodeAffinity(&corev1.Pod{Spec: spec})
		want, err := theirs.Match(node)
		required := nodeaffinity.RequiredBy(&spec)
		if got := required.Matches(node); got != (want && err == nil) {
			t.Fatalf("matches: %v; want %v, %v, of %s and %s", got, want, err, written(t, spec), written(t, node))
		}
		score := int64(0)
		if terms, err := peer.NewPreferredSchedulingTerms(spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution); err == nil {
			score = terms.Score(node)
		}
		prefers := nodeaffinity.PreferredBy(&spec)
		if got := prefers.Score(node); got != score {
			t.Fatalf("score: %d; want %d, of %s and %s", got, score, written(t, spec), written(t, node))
		}
		if want && len(spec.NodeSelector) > 0 {
			matched++
		}
		if score > 0 {
			preferred++
		}
	}
	if matched < 100 || preferred < 100 {
		t.Errorf("%d matched and %d preferred: too few to say anything", matched, preferred)
	}
}

func TestWithoutAffinity(t *testing.T) {
	for _, spec := range []corev1.PodSpec{{}, {Affinity: &corev1.Affinity{}}, {Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}}} {
		required, preferred := nodeaffinity.RequiredBy(&spec), nodeaffinity.PreferredBy(&spec)
		if node := (&corev1.Node{}); !required.Matches(node) || preferred.Score(node) != 0 {
			t.Errorf("%s: does not match", written(t, spec))
		}
	}
}

var (
	keys      = []string{"a", "b", "-"}
	values    = []string{"1", "2", "x", "?"}
	operators = []corev1.NodeSelectorOperator{
		corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
		corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, "Near",
	}
)

func any1[T any](r *rand.Rand, of []T) T {
	for i := range of[1:] { // the last ones are not valid: seldom
		if r.IntN(3) == 0 {
			return of[i]
		}
	}
	return of[r.IntN(len(of))]
}

func randomSpec(r *rand.Rand) corev1.PodSpec {
	spec := corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}}
	for range r.IntN(2) {
		spec.NodeSelector = map[string]string{any1(r, keys): any1(r, values)}
	}
	if r.IntN(3) > 0 {
		selector := &corev1.NodeSelector{}
		for range r.IntN(3) {
			selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, randomTerm(r))
		}
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = selector
	}
	for range r.IntN(3) {
		spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
			spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: int32(r.IntN(3)), Preference: randomTerm(r)})
	}
	return spec
}

func randomTerm(r *rand.Rand) (t corev1.NodeSelectorTerm) {
	for range r.IntN(3) {
		t.MatchExpressions = append(t.MatchExpressions, randomRequirement(r, keys))
	}
	for range r.IntN(2) {
		t.MatchFields = append(t.MatchFields, randomRequirement(r, []string{metav1.ObjectNameField, "other"}))
	}
	return t
}

func randomRequirement(r *rand.Rand, keys []string) corev1.NodeSelectorRequirement {
	requirement := corev1.NodeSelectorRequirement{Key: any1(r, keys), Operator: operators[r.IntN(len(operators))]}
	n := 1
	switch requirement.Operator {
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		n = 0
	}
	if r.IntN(8) == 0 {
		n = r.IntN(3)
	}
	for range n {
		requirement.Values = append(requirement.Values, any1(r, values))
	}
	return requirement
}

func randomNode(r *rand.Rand) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: any1(r, values), Labels: map[string]string{}}}
	for range r.IntN(3) {
		node.Labels[any1(r, keys)] = any1(r, values)
	}
	return node
}

func written(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
