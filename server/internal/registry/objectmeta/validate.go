// Package objectmeta validates the metadata of objects.
package objectmeta

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Path is where the metadata is in an object.
var Path = field.NewPath("metadata")

// Validate validates the metadata of an object of a kind with the library. It leaves out labels and
// annotations that are obviously valid: the library matches regular expressions
// with each, which took a twentieth of the time of a create. Names are left to the kind's
// strategy.
func Validate(res *resource.Resource, obj resource.Object) field.ErrorList {
	return append(validate(res, obj, anyName), ValidateFinalizers(res, obj)...)
}

// ValidateReplaced is Validate for an object that replaces another: its generateName, which
// no name is made of any more, must be part of a path whatever the kind's strategy says. It
// leaves out ValidateFinalizers: kube-apiserver first says what must not change.
func ValidateReplaced(res *resource.Resource, obj resource.Object) field.ErrorList {
	return validate(res, obj, prefixInPath)
}

func validate(res *resource.Resource, obj resource.Object, name validation.ValidateNameFunc) field.ErrorList {
	meta := typed(obj)
	if meta == nil {
		return validation.ValidateObjectMetaAccessor(obj, res.Namespaced, name, Path)
	}
	rest := *meta
	if plainLabels(rest.Labels) {
		rest.Labels = nil
	}
	if plainAnnotations(rest.Annotations) {
		rest.Annotations = nil
	}
	return validation.ValidateObjectMetaAccessor(&rest, res.Namespaced, name, Path)
}

// typed returns the metadata of an object of a built-in kind, nil of a custom resource.
func typed(obj resource.Object) *metav1.ObjectMeta {
	if accessor, ok := obj.(metav1.ObjectMetaAccessor); ok {
		meta, _ := accessor.GetObjectMeta().(*metav1.ObjectMeta)
		return meta
	}
	return nil
}

// ValidateFinalizers is the part of the rules for metadata that only built-in kinds have.
func ValidateFinalizers(res *resource.Resource, obj resource.Object) field.ErrorList {
	meta := typed(obj)
	if meta == nil || generalGroups.Has(res.Group) || res.Strategy.MetadataIfValid {
		return nil
	}
	return validateFinalizers(meta.Finalizers)
}

// generalGroups are the groups of kube-apiserver whose metadata has only the rules of custom resources.
var generalGroups = sets.New(apiextensionsv1.GroupName, admissionv1.GroupName, apiregistrationv1.GroupName, coordinationv1.GroupName, nodev1.GroupName)

// validateFinalizers has the rule that built-in kinds add to that of all kinds: a
// finalizer without a domain must be one of Kubernetes' own.
func validateFinalizers(finalizers []string) field.ErrorList {
	var errs field.ErrorList
	for i, name := range finalizers {
		switch {
		case strings.Contains(name, "/"), name == string(corev1.FinalizerKubernetes),
			name == metav1.FinalizerOrphanDependents, name == metav1.FinalizerDeleteDependents:
		default:
			errs = append(errs, field.Invalid(Path.Child("finalizers").Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

func plainLabels(labels map[string]string) bool {
	for key, value := range labels {
		if !plainKey(key) || value != "" && !plainName(value) {
			return false
		}
	}
	return true
}

func plainAnnotations(annotations map[string]string) bool {
	size := 0
	for key, value := range annotations {
		if !plainKey(key) {
			return false
		}
		size += len(key) + len(value)
	}
	return size <= validation.TotalAnnotationSizeLimitB
}

const (
	maxKeyName   = 63  // of a qualified name, or a label's value
	maxKeyPrefix = 253 // of a DNS subdomain
)

// plainKey says whether s is surely a qualified name: perhaps a DNS subdomain
// and a slash, then a name.
func plainKey(s string) bool {
	for i := range len(s) {
		if s[i] == '/' {
			return i <= maxKeyPrefix && plainDomain(s[:i]) && plainName(s[i+1:])
		}
	}
	return plainName(s)
}

func plainName(s string) bool {
	if len(s) == 0 || len(s) > maxKeyName || !alphanumeric(s[0]) || !alphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// plainDomain says whether s consists of labels of lower case between dots.
func plainDomain(s string) bool {
	before := byte('.')
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c == '-' && before != '.':
		case c == '.' && before != '.' && before != '-':
		default:
			return false
		}
		before = c
	}
	return before != '.' && before != '-'
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// anyName leaves the judgement of names to the kind's strategy.
func anyName(string, bool) []string { return nil }

// prefixInPath is anyName, but for a generateName.
func prefixInPath(name string, prefix bool) []string {
	if !prefix {
		return nil
	}
	return path.ValidatePathSegmentName(name, true)
}
