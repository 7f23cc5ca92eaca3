package authorization

import (
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestManyRequirements: every user may ask a review with as many as fit into a request.
func TestManyRequirements(t *testing.T) {
	const many = 90_000
	s := &authorizationv1.LabelSelectorAttributes{}
	for i := range many {
		s.Requirements = append(s.Requirements, metav1.LabelSelectorRequirement{Key: fmt.Sprint("k", many-i), Operator: metav1.LabelSelectorOpExists})
	}
	s.Requirements[0].Operator = "?"
	text, err := labelSelectorOf(s)
	if err == nil || strings.Count(text, ",") != many-2 || !strings.HasPrefix(text, "k1,k10,") {
		t.Errorf("a selector of %d requirements, %.50q (%v)", strings.Count(text, ",")+1, text, err)
	}
}
