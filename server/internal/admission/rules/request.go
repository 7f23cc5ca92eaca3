package rules

import (
	"context"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Labeled is an object that has labels.
type Labeled interface {
	GetLabels() map[string]string
}

// Endpoint is a resource in one version, and the kind of its objects. For a subresource
// with a body of its own, such as scale, Kind is the body's.
type Endpoint struct {
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
}

// Request is a request as rules see it. It is not changed by matching.
type Request struct {
	Operation   admissionv1.OperationType
	Endpoint    Endpoint // as the client addressed it
	Subresource string
	// Namespace is empty at cluster scope. For a Namespace itself it is its name.
	Namespace string
	// Name is empty if the server will generate it.
	Name string
	// Object is the new state and Old the replaced or deleted one; nil where there is none.
	Object, Old Labeled
	// Equivalents returns the other endpoints that show the same objects: their other
	// groups and versions. It is called only for match policy Equivalent, after the
	// endpoint itself did not match. nil: there are none.
	Equivalents func() []Endpoint
}

// Namespaces knows the labels of namespaces.
type Namespaces interface {
	// Labels returns the labels of a namespace, which must not be changed. The error is a
	// *apierrors.StatusError: NotFound if there is no such namespace.
	Labels(ctx context.Context, namespace string) (map[string]string, error)
}

// The kinds of admissionregistration.k8s.io.
var (
	webhookKinds = []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
	policyKinds  = []string{
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
	}
)

// ExemptFromPolicies reports whether requests for a kind pass no policy, whatever its rules say:
// those for policies, so that a mistake in one can always be taken back, and reviews.
func ExemptFromPolicies(kind schema.GroupKind) bool {
	return isReview(kind) || kind.Group == admissionv1.GroupName && slices.Contains(policyKinds, kind.Kind)
}

// ExemptFromWebhooks is ExemptFromPolicies for webhooks, which are not asked about their own
// configurations either.
func ExemptFromWebhooks(kind schema.GroupKind) bool {
	return ExemptFromPolicies(kind) || kind.Group == admissionv1.GroupName && slices.Contains(webhookKinds, kind.Kind)
}

// isReview reports whether a kind is one by which users are authenticated and authorized. What
// refused them would lock everyone out.
func isReview(kind schema.GroupKind) bool {
	return (kind.Group == authenticationv1.GroupName || kind.Group == authorizationv1.GroupName) && strings.HasSuffix(kind.Kind, "Review")
}

// isNamespace reports whether a resource is that of Namespaces. They are objects at cluster
// scope, though their requests carry a namespace.
func isNamespace(r schema.GroupVersionResource) bool {
	return r.Group == "" && r.Resource == "namespaces"
}

// matchesObject reports whether an object is there and has the labels.
func matchesObject(obj Labeled, selector labels.Selector) bool {
	return obj != nil && selector.Matches(labels.Set(obj.GetLabels()))
}
