package podspec

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// containerResources are those that Kubernetes itself knows of containers.
var containerResources = sets.New(corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage)

// Overcommits tells whether the requests for a resource may be below its
// limits: what the node cannot share must be asked for in full.
func Overcommits(name corev1.ResourceName) bool {
	return containerResources.Has(name) || IsNative(name) && !IsHugePages(name)
}

// IsHugePages reports whether a resource is huge pages of some size.
func IsHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// IsNative reports whether a resource is one without a domain, or of Kubernetes' own.
func IsNative(name corev1.ResourceName) bool {
	domain, _, qualified := strings.Cut(string(name), "/")
	return !qualified || strings.HasSuffix("."+domain, ".kubernetes.io")
}

// validateResources checks a container's requests and limits: known names,
// none negative, and no request above its limit.
func validateResources(path *field.Path, r *corev1.ResourceRequirements, claims claimNames) field.ErrorList {
	errs := validateRequirements(path, r, ContainerResource)
	return append(errs, validateClaimUses(path.Child("claims"), r.Claims, claims)...)
}

// ValidateLimits checks amounts that are added to those of a pod's containers, whose path is that of
// a container's limits.
func ValidateLimits(path *field.Path, amounts corev1.ResourceList) field.ErrorList {
	return validateRequirements(path, &corev1.ResourceRequirements{Limits: amounts}, ContainerResource)
}

// validateRequirements is validateResources for what is not only a container's: known checks a name.
func validateRequirements(path *field.Path, r *corev1.ResourceRequirements, known func(*field.Path, corev1.ResourceName) field.ErrorList) field.ErrorList {
	limits, requests := path.Child("limits"), path.Child("requests")
	var errs field.ErrorList
	hugePages, compute := false, false
	check := func(at *field.Path, name corev1.ResourceName, amount apiresource.Quantity) {
		errs = append(errs, known(at, name)...)
		errs = append(errs, ValidateAmount(at, name, amount)...)
		hugePages = hugePages || IsHugePages(name)
		compute = compute || name == corev1.ResourceCPU || name == corev1.ResourceMemory
	}
	for _, name := range validate.SortedNames(r.Limits) {
		at, limit := limits.Key(string(name)), r.Limits[name]
		check(at, name, limit)
		errs = append(errs, validateHugePages(at, name, limit)...)
	}
	for _, name := range validate.SortedNames(r.Requests) {
		request, at := r.Requests[name], requests.Key(string(name))
		check(at, name, request)
		limit, limited := r.Limits[name]
		switch {
		case !limited && !Overcommits(name):
			errs = append(errs, field.Required(limits, "Limit must be set for non overcommitable resources"))
		case limited && !Overcommits(name) && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(requests, request.String(), "must be equal to "+string(name)+" limit of "+limit.String()))
		case limited && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(requests, request.String(), "must be less than or equal to "+string(name)+" limit of "+limit.String()))
		}
		errs = append(errs, validateHugePages(at, name, request)...)
	}
	if hugePages && !compute {
		errs = append(errs, field.Forbidden(path, "HugePages require cpu or memory"))
	}
	return errs
}

// validateHugePages: of an amount of huge pages, all pages are whole.
func validateHugePages(at *field.Path, name corev1.ResourceName, amount apiresource.Quantity) field.ErrorList {
	if !IsHugePages(name) {
		return nil
	}
	size, err := apiresource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	if err == nil && size.Sign() > 0 && size.MilliValue()%1000 == 0 && amount.Value()%size.Value() == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, amount.String(), amount.String()+" is not positive integer multiple of "+string(name))}
}

// validateClaimUses checks which claims of its pod a container uses, and which requests of them.
func validateClaimUses(path *field.Path, uses []corev1.ResourceClaim, claims claimNames) field.ErrorList {
	var errs field.ErrorList
	whole, parts := sets.New[string](), sets.New[corev1.ResourceClaim]()
	partsOf := map[string]int{}
	for i, use := range uses {
		at := path.Index(i)
		if use.Name == "" {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		if use.Request != "" && !whole.Has(use.Name) {
			errs = append(errs, validate.Invalid(at.Child("request"), use.Request, validation.IsDNS1123Label(use.Request))...)
		}
		switch {
		case whole.Has(use.Name):
			errs = append(errs, field.Duplicate(at, use.Name))
		case use.Request == "":
			for range partsOf[use.Name] {
				errs = append(errs, field.Duplicate(at, use.Name))
			}
			whole.Insert(use.Name)
		case parts.Has(use):
			errs = append(errs, field.Duplicate(at, use.Name+"/"+use.Request))
		default:
			parts.Insert(use)
			partsOf[use.Name]++
		}
		if !claims.set.Has(use.Name) {
			err := field.NotFound(at, use.Name)
			err.Detail = claims.expected()
			errs = append(errs, err)
		}
	}
	return errs
}

// claimNames are the names of the resource claims of a pod.
type claimNames struct {
	set      sets.Set[string]
	expected func() string // what an error says of another name; made once for all containers
}

func claimNamesOf(claims []corev1.PodResourceClaim) claimNames {
	names := claimNames{expected: func() string { return "must be one of the names in pod.spec.resourceClaims which is empty" }}
	if len(claims) == 0 {
		return names
	}
	names.set = sets.New[string]()
	for _, claim := range claims {
		if claim.Name != "" {
			names.set.Insert(claim.Name)
		}
	}
	if len(names.set) > 0 {
		names.expected = sync.OnceValue(func() string {
			return "must be one of the names in pod.spec.resourceClaims: " + strings.Join(sets.List(names.set), ", ")
		})
	}
	return names
}

// validatePodClaims checks the resource claims of a pod.
func validatePodClaims(path *field.Path, claims []corev1.PodResourceClaim) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, claim := range claims {
		at := path.Index(i)
		if claim.Name != "" && seen.Has(claim.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), claim.Name))
		} else {
			errs = append(errs, validate.RequiredSyntax(at.Child("name"), claim.Name, validation.IsDNS1123Label)...)
			seen.Insert(claim.Name)
		}
		switch claimed, templated := claim.ResourceClaimName != nil, claim.ResourceClaimTemplateName != nil; {
		case claimed && templated:
			errs = append(errs, field.Invalid(at, claim, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"))
		case !claimed && !templated:
			errs = append(errs, field.Invalid(at, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
		}
		if name := claim.ResourceClaimName; name != nil {
			errs = append(errs, validate.Invalid(at.Child("resourceClaimName"), *name, validation.IsDNS1123Subdomain(*name))...)
		}
		if name := claim.ResourceClaimTemplateName; name != nil {
			errs = append(errs, validate.Invalid(at.Child("resourceClaimTemplateName"), *name, validation.IsDNS1123Subdomain(*name))...)
		}
	}
	return errs
}

// ValidateAmount checks an amount of a resource. What cannot be divided is counted.
func ValidateAmount(path *field.Path, name corev1.ResourceName, amount apiresource.Quantity) field.ErrorList {
	errs := validate.NotNegativeQuantity(path, amount)
	if (countedResources.Has(name) || !IsNative(name) && isExtended(name)) && amount.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, amount.String(), "must be an integer"))
	}
	return errs
}

// countedResources are those without a domain of which there is a whole number.
var countedResources = sets.New(corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
	corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers)

// ContainerResource checks the name of a container's resource: what has no domain must be one of the known.
func ContainerResource(path *field.Path, name corev1.ResourceName) field.ErrorList {
	errs := QualifiedResource(path, name)
	switch {
	case !strings.Contains(string(name), "/"):
		if !containerResources.Has(name) && !IsHugePages(name) {
			errs = append(errs, field.Invalid(path, name, "must be a standard resource for containers"))
		}
	case !IsNative(name) && !isExtended(name):
		errs = append(errs, field.Invalid(path, name, "doesn't follow extended resource name standard"))
	}
	return errs
}

// isExtended reports whether a resource may be one that a device plugin offers: a quota names its
// requests.
func isExtended(name corev1.ResourceName) bool {
	return !strings.HasPrefix(string(name), "requests.") && len(validation.IsQualifiedName("requests."+string(name))) == 0
}

// standardResources are the names without a domain that mean something in some object.
var standardResources = sets.New(corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourceRequestsCPU,
	corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
	corev1.ResourceLimitsEphemeralStorage, corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
	corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims, corev1.ResourceStorage, corev1.ResourceRequestsStorage,
	corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers)

// QualifiedResource checks the name of a resource.
func QualifiedResource(path *field.Path, name corev1.ResourceName) field.ErrorList {
	errs := validate.Invalid(path, name, validation.IsQualifiedName(string(name)))
	if len(errs) == 0 && !strings.Contains(string(name), "/") && !standardResources.Has(name) && !IsHugePages(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource type or fully qualified"))
	}
	return errs
}
