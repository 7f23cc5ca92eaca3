package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// containerResources are those that Kubernetes itself knows of containers.
var containerResources = sets.New(corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage)

// overcommits tells whether the requests for a resource may be below its
// limits: what the node cannot share must be asked for in full.
func overcommits(name corev1.ResourceName) bool {
	return containerResources.Has(name) || native(name) && !IsHugePages(name)
}

// IsHugePages reports whether a resource is huge pages of some size.
func IsHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// native are the resources without a domain, or of Kubernetes' own.
func native(name corev1.ResourceName) bool {
	domain, _, qualified := strings.Cut(string(name), "/")
	return !qualified || strings.HasSuffix("."+domain, ".kubernetes.io")
}

// validateResources checks a container's requests and limits: known names,
// none negative, and no request above its limit.
func validateResources(path *field.Path, r *corev1.ResourceRequirements) field.ErrorList {
	limits, requests := path.Child("limits"), path.Child("requests")
	errs := validateAmounts(limits, r.Limits)
	errs = append(errs, validateAmounts(requests, r.Requests)...)
	for _, name := range validate.SortedNames(r.Requests) {
		request, at := r.Requests[name], requests.Key(string(name))
		limit, limited := r.Limits[name]
		switch {
		case !limited && !overcommits(name):
			errs = append(errs, field.Required(limits, "Limit must be set for non overcommitable resources"))
		case limited && !overcommits(name) && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(requests, request.String(), "must be equal to "+string(name)+" limit of "+limit.String()))
		case limited && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(requests, request.String(), "must be less than or equal to "+string(name)+" limit of "+limit.String()))
		case IsHugePages(name) && request.IsZero():
			errs = append(errs, field.Invalid(at, request.String(), "must be greater than zero"))
		}
	}
	errs = append(errs, validateResourceClaims(path.Child("claims"), r.Claims)...)
	return errs
}

func validateResourceClaims(path *field.Path, claims []corev1.ResourceClaim) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[corev1.ResourceClaim]()
	for i, claim := range claims {
		errs = append(errs, validate.Required(path.Index(i).Child("name"), claim.Name)...)
		if seen.Has(claim) {
			errs = append(errs, field.Duplicate(path.Index(i), claim.Name))
		}
		seen.Insert(claim)
	}
	return errs
}

// validateAmounts checks a list of a container's resources.
func validateAmounts(path *field.Path, list corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range validate.SortedNames(list) {
		amount, at := list[name], path.Key(string(name))
		errs = append(errs, containerResource(at, name)...)
		errs = append(errs, validate.NotNegativeQuantity(at, amount)...)
		if !native(name) && amount.MilliValue()%1000 != 0 {
			errs = append(errs, field.Invalid(at, amount.String(), "must be an integer"))
		}
	}
	return errs
}

// containerResource: what has no domain must be one of the known.
func containerResource(path *field.Path, name corev1.ResourceName) field.ErrorList {
	errs := validate.Invalid(path, name, validation.IsQualifiedName(string(name)))
	if !strings.Contains(string(name), "/") && !containerResources.Has(name) && !IsHugePages(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource for containers"))
	}
	return errs
}
