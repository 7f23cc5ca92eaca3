package handlers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
)

// undecodable is the function bodyError for an object of a kind whose Go type is known here. If the
// body is of another kind, it says why kube-apiserver does not take that: it knows no such kind, or
// converts no object of it into the endpoint's, or does, but from another version than the path's.
func (x *writer) undecodable(err error, got, want schema.GroupVersionKind, body []byte) error {
	var (
		kind  *resource.KindMismatchError
		media *resource.UnsupportedMediaTypeError
	)
	if errors.As(err, &kind) {
		got, want = kind.Got, kind.Want
	}
	switch {
	case errors.As(err, &media), kind == nil && got.Kind == "":
		return bodyError(err, got, want, body)
	case got != want && !x.isKnown(got, want.Group): // whatever else is wrong with the body
		return status.BadRequest("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, want.Kind, notRegistered(got))
	case kind == nil, isVersionOf(got, want):
		return bodyError(err, got, want, body)
	}
	return status.BadRequest("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, want.Kind, unknownConversion(got, want))
}

// patchedKind is why a patch may not make an object of the kind want one of the kind got.
func (x *writer) patchedKind(got, want schema.GroupVersionKind) error {
	switch {
	case !x.isKnown(got, want.Group):
		return notRegistered(got)
	case isVersionOf(got, want):
		return &resource.KindMismatchError{Got: got, Want: want}
	}
	return unknownConversion(got, want)
}

// isVersionOf reports whether kube-apiserver converts objects of the two kinds into the same type.
func isVersionOf(got, want schema.GroupVersionKind) bool {
	return got.Kind == want.Kind && internalPackage(got.Group) == internalPackage(want.Group)
}

// unknownConversion says, in kube-apiserver's words, that an object of one kind is none of the other.
func unknownConversion(got, want schema.GroupVersionKind) error {
	return fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion", got.Version, got.Kind, internalPackage(want.Group), want.Kind)
}

// notRegistered says that kube-apiserver knows no such kind, in its words. The place in them is that
// in its source where it makes each table of kinds.
func notRegistered(kind schema.GroupVersionKind) error {
	return fmt.Errorf("no kind %q is registered for version %q in scheme \"pkg/runtime/scheme.go:111\"", kind.Kind, kind.GroupVersion())
}

// isKnown reports whether the part of kube-apiserver that serves a group knows a kind: one that the
// part serves, a list of those, or a Status. A server without a registry, which takes reviews
// only, cannot tell.
func (x *writer) isKnown(kind schema.GroupVersionKind, group string) bool {
	set := x.registry.Set()
	if set == nil {
		return true
	}
	if kind.Version == "v1" && kind.Group == "" && kind.Kind == "Status" {
		return true
	}
	isKind := func(r *resource.Resource) bool {
		return !r.Stored().Mixed && r.Group == kind.Group && r.Version == kind.Version && (r.Kind == kind.Kind || r.Kind+"List" == kind.Kind)
	}
	return partOf(kind.Group) == partOf(group) && (slices.ContainsFunc(set.Resources().All(), isKind) || slices.ContainsFunc(Unstored, isKind))
}

// partOf names the part of kube-apiserver that serves a group of built-in kinds. Each knows only
// its own kinds.
func partOf(group string) string {
	switch group {
	case "apiextensions.k8s.io", "apiregistration.k8s.io":
		return group
	}
	return "kube-apiserver"
}

// internalGroup is the group of the types that all versions of a group are converted to.
func internalGroup(group string) string {
	if internalPackage(group) == internalPackage("") {
		return ""
	}
	return group
}

// internalPackage is the Go package in which Kubernetes has the types that all versions of a group
// are converted to. The two groups of Events share theirs.
func internalPackage(group string) string {
	switch group {
	case "", "events.k8s.io":
		return "core"
	case "internal.apiserver.k8s.io":
		return "apiserverinternal"
	}
	name, _, _ := strings.Cut(group, ".")
	return name
}
