package tolerations

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/levelwire/levelwire/internal/testseed"
)

// TestSameAsKubernetes compares random tolerations with Kubernetes' own functions.
func TestSameAsKubernetes(t *testing.T) {
	random := testseed.New(t).Rand(0)
	words := func(of ...string) string { return of[random.IntN(len(of))] }
	effect := func() corev1.TaintEffect {
		return corev1.TaintEffect(words("", "NoSchedule", "NoExecute", "PreferNoSchedule"))
	}
	for range 20_000 {
		list := make([]corev1.Toleration, random.IntN(3*fewTolerations))
		for i := range list {
			list[i] = corev1.Toleration{
				Key: words("", "a", "b", "c", "d"), Value: words("", "x", "y", "1"), Effect: effect(),
				Operator: corev1.TolerationOperator(words("", "Equal", "Equal", "Exists", "Lt", "Gt", "other")),
			}
			if random.IntN(2) == 0 {
				list[i].TolerationSeconds = new(random.Int64N(5) - 2)
			}
		}
		taint := &corev1.Taint{Key: words("", "a", "b", "c", "d"), Value: words("", "x", "y", "1"), Effect: effect()}
		index := Of(list)
		if got, want := index.Tolerate(taint), corev1helpers.TolerationsTolerateTaint(klog.Background(), list, taint, false); got != want {
			t.Fatalf("%+v tolerate %+v: %t, want %t", list, taint, got, want)
		}
		if got, want := fmt.Sprint(index.Seconds(taint)), fmt.Sprint(secondsOf(list, taint)); got != want {
			t.Fatalf("%+v tolerate %+v for %s, want %s", list, taint, got, want)
		}
	}
}

// secondsOf is Seconds by one comparison after the other, as in GetMatchingTolerations of Kubernetes.
func secondsOf(list []corev1.Toleration, taint *corev1.Taint) (seconds int64, limited, ok bool) {
	for i := range list {
		if !list[i].ToleratesTaint(klog.Background(), taint, false) {
			continue
		}
		if s := list[i].TolerationSeconds; s != nil {
			return *s, true, true
		}
		return 0, false, true
	}
	return 0, false, false
}

// TestManyTolerations: what is looked up is not compared with each toleration, so that the list is read once.
func TestManyTolerations(t *testing.T) {
	list := make([]corev1.Toleration, 1000)
	for i := range list {
		list[i] = corev1.Toleration{Key: fmt.Sprint("k", i), Operator: corev1.TolerationOpExists}
	}
	index := Of(list)
	clear(list)
	if !index.Tolerate(&corev1.Taint{Key: "k999"}) || index.Tolerate(&corev1.Taint{Key: "k1000"}) {
		t.Error("the list is read again for each taint")
	}
}

// BenchmarkTolerate: a pod with 1,000 tolerations, and a taint that the last of them matches.
func BenchmarkTolerate(b *testing.B) {
	for _, n := range []int{3, 1000} {
		list := make([]corev1.Toleration, n)
		for i := range list {
			list[i] = corev1.Toleration{Key: fmt.Sprint("k", i), Operator: corev1.TolerationOpExists}
		}
		taint := &corev1.Taint{Key: fmt.Sprint("k", n-1), Effect: corev1.TaintEffectNoSchedule}
		index := Of(list)
		b.Run(fmt.Sprintf("%d/compared", n), func(b *testing.B) {
			for b.Loop() {
				corev1helpers.TolerationsTolerateTaint(klog.Background(), list, taint, false)
			}
		})
		b.Run(fmt.Sprintf("%d/indexed", n), func(b *testing.B) {
			for b.Loop() {
				index.Tolerate(taint)
			}
		})
	}
}
