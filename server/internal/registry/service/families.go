package service

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/status"
)

var (
	clusterIPsAt = field.NewPath("spec", "clusterIPs")
	familiesAt   = field.NewPath("spec", "ipFamilies")
	policyAt     = field.NewPath("spec", "ipFamilyPolicy")
)

// otherFamily is the one that a cluster with a single family does not serve.
var otherFamily = map[corev1.IPFamily]corev1.IPFamily{
	corev1.IPv4Protocol: corev1.IPv6Protocol, corev1.IPv6Protocol: corev1.IPv4Protocol,
}

// family is the one family of the cluster IPs.
func (s *Allocator) family() corev1.IPFamily { return familyOf(s.opts.CIDR.Addr()) }

func familyOf(addr netip.Addr) corev1.IPFamily {
	if addr.Is6() {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// matchClusterIPs brings the two fields for the cluster IP in line where a client has
// written one of them only.
func matchClusterIPs(svc, old *corev1.Service) {
	spec := &svc.Spec
	if old == nil {
		if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
		return
	}
	was := &old.Spec
	same := slices.Equal(spec.ClusterIPs, was.ClusterIPs)
	switch {
	case spec.ClusterIP == was.ClusterIP && len(spec.ClusterIPs) == 0:
		spec.ClusterIPs = slices.Clone(was.ClusterIPs)
	case spec.ClusterIP == was.ClusterIP || !same:
	case spec.ClusterIP == "":
		spec.ClusterIPs = nil
	default:
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
}

// completeFamilies sets the families of the Service's addresses and the policy that they
// follow, where the client has not, and refuses a family that the cluster does not serve.
func (a *allocation) completeFamilies() error {
	spec := &a.svc.Spec
	if a.old != nil && staysPreferred(spec, &a.old.Spec) {
		return nil
	}
	a.completePolicy()
	if errs := validateAddresses(spec); len(errs) > 0 {
		return a.invalid(errs...)
	}
	single := *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
	errs := a.followPolicy(single)
	errs = append(errs, a.inferFamilies()...)
	if len(errs) > 0 {
		return a.invalid(errs...)
	}
	if spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0 {
		// Nobody knows where the endpoints of such a Service are.
		if len(spec.IPFamilies) == 0 {
			spec.IPFamilies = []corev1.IPFamily{a.allocator.family()}
		}
		if len(spec.IPFamilies) == 1 && !single {
			spec.IPFamilies = append(spec.IPFamilies, otherFamily[spec.IPFamilies[0]])
		}
		return nil
	}
	if *spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack {
		errs = append(errs, field.Invalid(policyAt, spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	}
	for i, family := range spec.IPFamilies {
		if family != a.allocator.family() {
			errs = append(errs, field.Invalid(familiesAt.Index(i), family, "not configured on this cluster"))
		}
	}
	if len(errs) > 0 {
		return a.invalid(errs...)
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{a.allocator.family()}
	}
	return nil
}

// staysPreferred reports whether a Service that would like to have both families leaves
// all that it has as it is: it was decided under what the cluster served then.
func staysPreferred(spec, was *corev1.ServiceSpec) bool {
	prefers := func(s *corev1.ServiceSpec) bool {
		return s.IPFamilyPolicy != nil && *s.IPFamilyPolicy == corev1.IPFamilyPolicyPreferDualStack
	}
	return spec.Type == was.Type && prefers(spec) && prefers(was) &&
		spec.ClusterIP == was.ClusterIP && slices.Equal(spec.ClusterIPs, was.ClusterIPs) && slices.Equal(spec.IPFamilies, was.IPFamilies)
}

func (a *allocation) completePolicy() {
	spec := &a.svc.Spec
	if spec.IPFamilyPolicy != nil {
		return
	}
	policy := corev1.IPFamilyPolicySingleStack
	switch {
	case a.old != nil && a.old.Spec.IPFamilyPolicy != nil:
		policy = *a.old.Spec.IPFamilyPolicy
	case spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0:
		policy = corev1.IPFamilyPolicyRequireDualStack
	}
	spec.IPFamilyPolicy = &policy
}

// followPolicy takes the second address and family from a Service that is to have one
// only, and refuses more or fewer of them than the policy allows.
func (a *allocation) followPolicy(single bool) field.ErrorList {
	spec := &a.svc.Spec
	var errs field.ErrorList
	if a.old != nil {
		was := &a.old.Spec
		if single {
			if len(spec.ClusterIPs) > 1 && slices.Equal(spec.ClusterIPs, was.ClusterIPs) {
				spec.ClusterIPs = spec.ClusterIPs[:1]
			}
			if len(spec.IPFamilies) > 1 && slices.Equal(spec.IPFamilies, was.IPFamilies) {
				spec.IPFamilies = spec.IPFamilies[:1]
			}
		} else {
			if len(was.ClusterIPs) == 2 && len(spec.ClusterIPs) == 1 {
				errs = append(errs, field.Invalid(policyAt, spec.IPFamilyPolicy, "must be 'SingleStack' to release the secondary cluster IP"))
			}
			if len(was.IPFamilies) == 2 && len(spec.IPFamilies) == 1 {
				errs = append(errs, field.Invalid(policyAt, spec.IPFamilyPolicy, "must be 'SingleStack' to release the secondary IP family"))
			}
		}
	}
	if single && len(spec.ClusterIPs) == 2 {
		errs = append(errs, field.Invalid(policyAt, spec.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"))
	}
	if single && len(spec.IPFamilies) == 2 {
		errs = append(errs, field.Invalid(policyAt, spec.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"))
	}
	return errs
}

// inferFamilies adds the families of the addresses that the Service names.
func (a *allocation) inferFamilies() field.ErrorList {
	spec := &a.svc.Spec
	var errs field.ErrorList
	for i, ip := range spec.ClusterIPs {
		if ip == corev1.ClusterIPNone {
			break
		}
		addr, err := netip.ParseAddr(ip)
		if err != nil || i < len(spec.IPFamilies) {
			continue
		}
		if family := familyOf(addr); family != a.allocator.family() {
			errs = append(errs, field.Invalid(clusterIPsAt.Index(i), spec.ClusterIPs, fmt.Sprintf("%s is not configured on this cluster", family)))
		} else {
			spec.IPFamilies = append(spec.IPFamilies, family)
		}
	}
	return errs
}

// validateAddresses checks the cluster IPs, their families and the policy by themselves.
func validateAddresses(spec *corev1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	switch {
	case spec.ClusterIP == "" && len(spec.ClusterIPs) > 0:
		errs = append(errs, field.Invalid(clusterIPsAt, spec.ClusterIPs, "must be empty when `clusterIP` is not specified"))
	case spec.ClusterIP != "" && len(spec.ClusterIPs) == 0:
		errs = append(errs, field.Required(clusterIPsAt, ""))
	case spec.ClusterIP != "" && spec.ClusterIPs[0] != spec.ClusterIP:
		errs = append(errs, field.Invalid(clusterIPsAt, spec.ClusterIPs, "first value must match `clusterIP`"))
	}
	known := []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	seen := sets.New[corev1.IPFamily]()
	for i, family := range spec.IPFamilies {
		if !slices.Contains(known, family) {
			errs = append(errs, field.NotSupported(familiesAt.Index(i), family, known))
		}
		if seen.Has(family) {
			errs = append(errs, field.Duplicate(familiesAt.Index(i), family))
		}
		seen.Insert(family)
	}
	policies := []corev1.IPFamilyPolicy{corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack}
	if !slices.Contains(policies, *spec.IPFamilyPolicy) {
		errs = append(errs, field.NotSupported(policyAt, *spec.IPFamilyPolicy, policies))
	}
	malformed := validateIPs(spec.ClusterIPs)
	errs = append(errs, malformed...)
	if len(spec.ClusterIPs) > 2 {
		errs = append(errs, field.Invalid(clusterIPsAt, spec.ClusterIPs, "may only hold up to 2 values"))
	}
	if len(malformed) > 0 {
		return errs
	}
	return append(errs, validateIPFamilies(spec)...)
}

func validateIPs(ips []string) field.ErrorList {
	var errs field.ErrorList
	for i, ip := range ips {
		if i > 0 || ip != corev1.ClusterIPNone {
			errs = append(errs, utilvalidation.IsValidIPForLegacyField(clusterIPsAt.Index(i), ip, true, nil)...)
		} else if len(ips) > 1 {
			errs = append(errs, field.Invalid(clusterIPsAt, ips, "'None' must be the first and only value"))
		}
	}
	return errs
}

// validateIPFamilies checks well-formed addresses against the families that they are of.
func validateIPFamilies(spec *corev1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	var families []corev1.IPFamily
	for _, ip := range spec.ClusterIPs {
		if addr, err := netip.ParseAddr(ip); err == nil {
			families = append(families, familyOf(addr))
		}
	}
	if len(families) > 1 && (!slices.Contains(families, corev1.IPv4Protocol) || !slices.Contains(families, corev1.IPv6Protocol)) {
		errs = append(errs, field.Invalid(clusterIPsAt, spec.ClusterIPs, "may specify no more than one IP for each IP family"))
	}
	for i, family := range families {
		if i < len(spec.IPFamilies) && otherFamily[spec.IPFamilies[i]] == family {
			errs = append(errs, field.Invalid(clusterIPsAt.Index(i), spec.ClusterIPs[i],
				fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", spec.IPFamilies[i], i)))
		}
	}
	return errs
}

func (a *allocation) invalid(errs ...*field.Error) error {
	return status.Invalid(schema.GroupKind{Kind: "Service"}, a.q.Name, errs)
}
