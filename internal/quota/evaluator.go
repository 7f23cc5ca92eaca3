package quota

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Evaluator knows what the objects of one resource use. It is a small value, safe
// for concurrent use. Its methods take objects of the resource's Go type; of a
// resource that is only counted the object may be of any type, and nil.
type Evaluator struct {
	resource schema.GroupResource
	kind     kind
}

// kind is what one resource does differently from the others.
type kind interface {
	// tracks reports whether objects of the resource can use the named amount.
	tracks(name corev1.ResourceName) bool
	// usage returns what the object uses at a time.
	usage(obj any, now time.Time) corev1.ResourceList
	// inScope reports whether the object is one of those that a scope selects.
	inScope(obj any, scope corev1.ScopedResourceSelectorRequirement) bool
	// missing returns an error if the object does not say how much it uses of amounts
	// for which a quota requires that.
	missing(obj any, required []corev1.ResourceName) error
}

// ignored are resources that quotas do not limit: nothing of them is stored, or they
// are events, which Kubernetes has never limited.
var ignored = map[schema.GroupResource]bool{
	{Resource: "events"}:                                                   true,
	{Group: "events.k8s.io", Resource: "events"}:                           true,
	{Resource: "bindings"}:                                                 true,
	{Resource: "componentstatuses"}:                                        true,
	{Group: "authentication.k8s.io", Resource: "tokenreviews"}:             true,
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}:       true,
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}:      true,
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}:  true,
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}: true,
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}:   true,
}

// For returns the Evaluator of a resource. It returns false if quotas do not limit it.
func For(resource schema.GroupResource) (Evaluator, bool) {
	if ignored[resource] {
		return Evaluator{}, false
	}
	if resource.Group == "" {
		switch resource.Resource {
		case "pods":
			return Evaluator{resource, podKind{}}, true
		case "services":
			return Evaluator{resource, serviceKind{}}, true
		case "persistentvolumeclaims":
			return Evaluator{resource, claimKind{}}, true
		}
	}
	if resource == DeviceClaims {
		return Evaluator{resource, deviceKind{}}, true
	}
	return Evaluator{resource, countedKind{CountName(resource), aliases[resource]}}, true
}

// Resource returns the resource of the evaluator.
func (e Evaluator) Resource() schema.GroupResource { return e.resource }

// Tracked returns those of the names that objects of the resource can use.
func (e Evaluator) Tracked(list corev1.ResourceList) []corev1.ResourceName {
	var tracked []corev1.ResourceName
	for name := range list {
		if e.kind.tracks(name) {
			tracked = append(tracked, name)
		}
	}
	return tracked
}

// Usage returns what an object uses at a time: of a pod that has ended it is less. The
// result is the caller's.
func (e Evaluator) Usage(obj any, now time.Time) corev1.ResourceList { return e.kind.usage(obj, now) }

// Missing returns an error if an object does not say how much it uses of one of the
// names although a quota on them requires it.
func (e Evaluator) Missing(obj any, required []corev1.ResourceName) error {
	return e.kind.missing(obj, required)
}

// InScopes reports whether an object is one of those that the quota is about. A quota
// without scopes is about all objects.
func (e Evaluator) InScopes(q *corev1.ResourceQuota, obj any) bool {
	for _, scope := range q.Spec.Scopes {
		if !e.kind.inScope(obj, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}) {
			return false
		}
	}
	if q.Spec.ScopeSelector == nil {
		return true
	}
	for _, scope := range q.Spec.ScopeSelector.MatchExpressions {
		if !e.kind.inScope(obj, scope) {
			return false
		}
	}
	return true
}

// UsageOf returns what an object uses of the amounts that hard names, nothing if the
// object is in none of the quota's scopes.
func (e Evaluator) UsageOf(q *corev1.ResourceQuota, hard corev1.ResourceList, obj any, now time.Time) corev1.ResourceList {
	if !e.InScopes(q, obj) {
		return nil
	}
	return Mask(e.kind.usage(obj, now), hard)
}
