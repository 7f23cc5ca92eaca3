package storage

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// Terms that repeat each other are found without comparing each with each, and what is said of
// them does not grow with the square of their number: 100,000 of them fit into a request.
func TestManyEqualTopologies(t *testing.T) {
	const many = 100_000
	if errs := validateTopologies(field.NewPath("allowedTopologies"), make([]corev1.TopologySelectorTerm, many)); len(errs) > many*maxRepeated {
		t.Errorf("%d errors of %d terms", len(errs), many)
	}
	requirement := []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"a", "b"}}}
	reversed := []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"b", "a"}}}
	errs := validateTopologies(field.NewPath("allowedTopologies"), []corev1.TopologySelectorTerm{{MatchLabelExpressions: requirement}, {MatchLabelExpressions: reversed}})
	if len(errs) != 1 || errs[0].Type != field.ErrorTypeDuplicate || errs[0].Field != "allowedTopologies[1].matchLabelExpressions" {
		t.Errorf("%v", errs)
	}
}
