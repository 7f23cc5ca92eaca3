package registry

import (
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// validateMetadata validates metadata with the library. It leaves out labels and
// annotations that are obviously valid: the library matches regular expressions
// with each, which took a twentieth of the time of a create.
func (r Registry) validateMetadata(obj resource.Object) field.ErrorList {
	var meta *metav1.ObjectMeta
	if typed, ok := obj.(metav1.ObjectMetaAccessor); ok {
		meta, _ = typed.GetObjectMeta().(*metav1.ObjectMeta)
	}
	if meta == nil {
		return validation.ValidateObjectMetaAccessor(obj, r.res.Namespaced, anyName, metadataPath)
	}
	rest := *meta
	if plainLabels(rest.Labels) {
		rest.Labels = nil
	}
	if plainAnnotations(rest.Annotations) {
		rest.Annotations = nil
	}
	return validation.ValidateObjectMetaAccessor(&rest, r.res.Namespaced, anyName, metadataPath)
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
