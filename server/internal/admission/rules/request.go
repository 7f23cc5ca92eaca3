package rules

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
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

// selfConfiguring are the kinds of admissionregistration.k8s.io. A request for them passes
// no webhook and no policy, so that a mistake in one of them can always be taken back.
var selfConfiguring = []string{
	"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
}

// Exempt reports whether requests for a kind pass no webhook and no policy, whatever their
// rules say.
func Exempt(kind schema.GroupKind) bool {
	return kind.Group == admissionv1.GroupName && slices.Contains(selfConfiguring, kind.Kind)
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
