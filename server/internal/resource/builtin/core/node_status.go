package core

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// validateNodeStatus checks what a kubelet says of its node.
func validateNodeStatus(s *corev1.NodeStatus) field.ErrorList {
	errs := validateNodeResources(s)
	errs = append(errs, validateDeclaredFeatures(s.DeclaredFeatures)...)
	return append(errs, validateNodeAddresses(s.Addresses)...)
}

// completeNodeStatus leaves out what is empty, which kube-apiserver's store does not tell from what is
// not there.
func completeNodeStatus(node *corev1.Node) {
	if len(node.Status.Allocatable) == 0 {
		node.Status.Allocatable = nil
		defaultNode(node)
	}
	define.NoEmptyListIn(&node.Status.Images, func(image *corev1.ContainerImage) *[]string { return &image.Names })
}

func validateNodeAddresses(addresses []corev1.NodeAddress) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[corev1.NodeAddress]()
	for i, address := range addresses {
		if seen.Has(address) {
			errs = append(errs, field.Duplicate(field.NewPath("status", "addresses").Index(i), address))
		}
		seen.Insert(address)
	}
	return errs
}

// featureName begins with a capital: MyFeature, or MyFeature/aPart.
var featureName = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*$`)

// validateDeclaredFeatures checks the names of what a kubelet can do, which are in order.
func validateDeclaredFeatures(features []string) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status", "declaredFeatures")
	for i, feature := range features {
		switch {
		case i == 0:
		case feature == features[i-1]:
			errs = append(errs, field.Duplicate(path.Index(i), feature))
		case feature < features[i-1]:
			errs = append(errs, field.Invalid(path.Index(i), feature, "list must be sorted alphabetically"))
		}
		switch {
		case len(feature) > validation.DNS1123SubdomainMaxLength:
			errs = append(errs, field.Invalid(path.Index(i), feature, fmt.Sprintf("invalid feature name %q: must be no more than %d characters", feature, validation.DNS1123SubdomainMaxLength)))
		case !featureName.MatchString(feature):
			errs = append(errs, field.Invalid(path.Index(i), feature, fmt.Sprintf("invalid feature name %q: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes", feature)))
		}
	}
	return errs
}
