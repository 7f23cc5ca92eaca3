package ownership

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestSelects compares with Kubernetes' selectors.
func TestSelects(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	one := func() string { return string(rune('a' + r.IntN(3))) }
	matched := 0
	for range 10_000 {
		selector, set := &metav1.LabelSelector{MatchLabels: map[string]string{}}, labels.Set{}
		for range r.IntN(2) {
			selector.MatchLabels[one()] = one()
		}
		for range r.IntN(3) {
			switch key := one(); r.IntN(4) {
			case 0:
				selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{one(), one()}})
			case 1:
				selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{one()}})
			case 2:
				selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists})
			case 3:
				selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist})
			}
		}
		for range r.IntN(4) {
			set[one()] = one()
		}
		theirs, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		want := theirs.Matches(set)
		if got := Selects(selector, set); got != want {
			t.Fatalf("%v selects %v: %v", theirs, set, got)
		}
		if got := byKey(theirs).Matches(set); got != want {
			t.Fatalf("%v, by key, selects %v: %v", theirs, set, got)
		}
		if want {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("only %d matched", matched)
	}
	if Selects(nil, nil) || Selects(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}, nil) {
		t.Error("nothing, or an operator that does not exist, selects")
	}
}

// TestIndexedSelectors compares what is parsed, which has more operators, with Kubernetes' selectors.
func TestIndexedSelectors(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	values := []string{"-9223372036854775808", "-1", "0", "1", "2", "9223372036854775807"}
	one := func() string { return string(rune('a' + r.IntN(3))) }
	value := func() string { return values[r.IntN(len(values))] }
	matched := 0
	for range 20_000 {
		var terms []string
		for range 1 + r.IntN(3) {
			terms = append(terms, fmt.Sprintf([]string{"%[1]s=%[2]s", "%[1]s==%[2]s", "%[1]s!=%[2]s", "%[1]s in (%[2]s,1)", "%[1]s notin (%[2]s,0)", "%[1]s", "!%[1]s", "%[1]s>%[2]s", "%[1]s<%[2]s"}[r.IntN(9)], one(), value()))
		}
		theirs, err := labels.Parse(strings.Join(terms, ","))
		if err != nil {
			continue // a label begins with no sign, but an integer does
		}
		set := labels.Set{}
		for range r.IntN(4) {
			set[one()] = append(values, "x", "")[r.IntN(len(values)+2)]
		}
		want := theirs.Matches(set)
		if got := byKey(theirs).Matches(set); got != want {
			t.Fatalf("%v, by key, selects %v: %v", theirs, set, got)
		}
		if got := Indexed(theirs).Matches(set); got != want {
			t.Fatalf("%v, indexed, selects %v: %v", theirs, set, got)
		}
		if want {
			matched++
		}
	}
	if matched < 2000 {
		t.Errorf("only %d matched", matched)
	}
}

// TestLargeSelectors: a handler that asks of each owner whether it selects a pod makes no copy of the selector.
func TestLargeSelectors(t *testing.T) {
	large := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for i := range 10_000 {
		large.MatchExpressions = append(large.MatchExpressions, metav1.LabelSelectorRequirement{Key: fmt.Sprint("k", i), Operator: metav1.LabelSelectorOpDoesNotExist})
	}
	set := map[string]string{"app": "web"}
	if n := testing.AllocsPerRun(10, func() {
		if !Selects(large, set) {
			t.Error("is not selected")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
