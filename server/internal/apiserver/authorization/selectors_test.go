package authorization

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// recording keeps what it is asked.
type recording struct{ asked auth.Attributes }

func (r *recording) Authorize(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	r.asked = a
	return auth.Allow, "", nil
}

func fieldRequirement(key string, operator metav1.FieldSelectorOperator, values ...string) metav1.FieldSelectorRequirement {
	return metav1.FieldSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func labelRequirement(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func byField(raw string, requirements ...metav1.FieldSelectorRequirement) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Resource: "pods", FieldSelector: &authorizationv1.FieldSelectorAttributes{RawSelector: raw, Requirements: requirements}}
}

func byLabel(raw string, requirements ...metav1.LabelSelectorRequirement) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Resource: "pods", LabelSelector: &authorizationv1.LabelSelectorAttributes{RawSelector: raw, Requirements: requirements}}
}

func review(decide auth.Authorizer, attributes authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	_, err := New(decide).Review(context.Background(), auth.User{Name: "jane"}, "", review)
	return review.Status, err
}

// TestSelectors: reviews ask with the selectors that a request would have; what is not
// understood is left out, and said in Kubernetes' words.
func TestSelectors(t *testing.T) {
	const all, part = "ignored due to parse error", "partially ignored due to parse error"
	for name, test := range map[string]struct {
		asks         authorizationv1.ResourceAttributes
		field, label string
		problem      string
	}{
		"raw fields":       {byField("spec.nodeName=a,metadata.name!=b"), "spec.nodeName=a,metadata.name!=b", "", ""},
		"fields":           {byField("", fieldRequirement("spec.nodeName", "In", "a,b"), fieldRequirement("x", "NotIn", "c")), `spec.nodeName=a\,b,x!=c`, "", ""},
		"wrong raw fields": {byField("spec.nodeName"), "", "", all},
		"fields that are not supported": {
			byField("", fieldRequirement("x", "In", "a", "b"), fieldRequirement("x", "Exists"), fieldRequirement("a=b,x", "In", "a"), fieldRequirement("y", "In", "c")), "y=c", "", part,
		},
		"an unknown operator": {byField("", fieldRequirement("x", "Like", "a")), "", "", all},
		"raw labels":          {byLabel("app in (x,y),!old"), "", "app in (x,y),!old", ""},
		"labels":              {byLabel("", labelRequirement("app", "In", "y", "x"), labelRequirement("old", "DoesNotExist")), "", "app in (x,y),!old", ""},
		"wrong raw labels":    {byLabel("a b"), "", "", all},
		"unknown labels":      {byLabel("", labelRequirement("app", "Like", "x"), labelRequirement("new", "Exists")), "", "new", part},
	} {
		r := &recording{}
		status, err := review(r, test.asks)
		if err != nil || !status.Allowed || r.asked.FieldSelector != test.field || r.asked.LabelSelector != test.label || r.asked.Version != "*" {
			t.Errorf("%s: asked %+v, %v", name, r.asked, err)
		}
		if !strings.HasSuffix(status.EvaluationError, test.problem) || (status.EvaluationError == "") != (test.problem == "") || test.problem == all && strings.HasSuffix(status.EvaluationError, part) {
			t.Errorf("%s: %q, want %q", name, status.EvaluationError, test.problem)
		}
	}
}

// TestWrongSelectors are refused with 422.
func TestWrongSelectors(t *testing.T) {
	for want, attributes := range map[string]authorizationv1.ResourceAttributes{
		"spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: \"a=b\": may not specified at the same time as requirements": byField("a=b", fieldRequirement("a", "In", "b")),
		"spec.resourceAttributes.fieldSelector.requirements: Required value":                                                            byField(""),
		"spec.resourceAttributes.fieldSelector.requirements[0].key: Required value":                                                     byField("", fieldRequirement("", "In", "b")),
		"spec.resourceAttributes.fieldSelector.requirements[0].values: Required value":                                                  byField("", fieldRequirement("a", "In")),
		"spec.resourceAttributes.labelSelector.rawSelector: Invalid value":                                                              byLabel("a=b", labelRequirement("a", "In", "b")),
		"spec.resourceAttributes.labelSelector.requirements: Required value":                                                            byLabel(""),
		"spec.resourceAttributes.labelSelector.requirements[0].values: Forbidden":                                                       byLabel("", labelRequirement("a", "Exists", "b")),
	} {
		if _, err := review(&recording{}, attributes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
