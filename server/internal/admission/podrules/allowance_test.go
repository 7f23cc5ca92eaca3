package podrules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestAllowance compares with each toleration of the list.
func TestAllowance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	one := func() (t corev1.Toleration) {
		t.Key = []string{"", "a", "b"}[r.IntN(3)]
		t.Operator = []corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpGt}[r.IntN(4)]
		t.Value = []string{"", "1", "2"}[r.IntN(3)]
		t.Effect = []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}[r.IntN(3)]
		if r.IntN(2) == 0 {
			t.TolerationSeconds = new(int64(r.IntN(4) - 2))
		}
		return t
	}
	included := 0
	for range 50_000 {
		var list []corev1.Toleration
		for range r.IntN(4) {
			list = append(list, one())
		}
		asked := one()
		want := slices.ContainsFunc(list, func(a corev1.Toleration) bool { return includes(&a, &asked) })
		if got := allowanceOf(list).has(&asked); got != want {
			t.Fatalf("%+v includes %+v: %v", list, asked, got)
		}
		if want {
			included++
		}
	}
	if included < 1000 {
		t.Errorf("only %d are included", included)
	}
}

// TestManyAllowedTolerations: those of a large pod are looked up in those that its namespace allows. Held against each, they
// took hours, beyond the time of all tests of the package.
func TestManyAllowedTolerations(t *testing.T) {
	var allowed []corev1.Toleration
	for i := range 20_000 {
		allowed = append(allowed, corev1.Toleration{Key: "k", Value: fmt.Sprint(i), Effect: corev1.TaintEffectNoSchedule})
	}
	included := allowanceOf(allowed)
	for i := range 1_000_000 {
		asked := corev1.Toleration{Key: "k", Value: fmt.Sprint(i % 20_000), Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoSchedule}
		if !included.has(&asked) {
			t.Fatalf("%+v is not", asked)
		}
	}
}
