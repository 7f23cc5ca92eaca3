package podspec

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// maxID is the highest user or group id that Linux knows.
const maxID int64 = 1<<31 - 1

const sysctlMax = 253

var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

func validateID(path *field.Path, id *int64) field.ErrorList {
	if id != nil && (*id < 0 || *id > maxID) {
		return field.ErrorList{field.Invalid(path, *id, "must be between 0 and 2147483647, inclusive")}
	}
	return nil
}

// validatePodSecurity checks what a pod says for all its containers, and what
// it shares with its host.
func validatePodSecurity(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	s, at := spec.SecurityContext, path.Child("securityContext")
	if s == nil {
		return nil
	}
	errs := validateID(at.Child("runAsUser"), s.RunAsUser)
	errs = append(errs, validateID(at.Child("runAsGroup"), s.RunAsGroup)...)
	errs = append(errs, validateID(at.Child("fsGroup"), s.FSGroup)...)
	for i, group := range s.SupplementalGroups {
		errs = append(errs, validateID(at.Child("supplementalGroups").Index(i), &group)...)
	}
	if spec.ShareProcessNamespace != nil && *spec.ShareProcessNamespace && spec.HostPID {
		errs = append(errs, field.Invalid(path.Child("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	if p := s.FSGroupChangePolicy; p != nil {
		errs = append(errs, validate.OneOf(at.Child("fsGroupChangePolicy"), *p, corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways)...)
	}
	if p := s.SupplementalGroupsPolicy; p != nil {
		errs = append(errs, validate.OneOf(at.Child("supplementalGroupsPolicy"), *p, corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)...)
	}
	errs = append(errs, validateSeccomp(at.Child("seccompProfile"), s.SeccompProfile)...)
	errs = append(errs, validateAppArmor(at.Child("appArmorProfile"), s.AppArmorProfile)...)
	seen := sets.New[string]()
	for i, sysctl := range s.Sysctls {
		at := at.Child("sysctls").Index(i).Child("name")
		switch {
		case sysctl.Name == "":
			errs = append(errs, field.Required(at, ""))
		case len(sysctl.Name) > sysctlMax || !sysctlName.MatchString(sysctl.Name):
			errs = append(errs, field.Invalid(at, sysctl.Name, "must have at most 253 characters and match regex "+sysctlName.String()))
		case seen.Has(sysctl.Name):
			errs = append(errs, field.Duplicate(at, sysctl.Name))
		}
		seen.Insert(sysctl.Name)
	}
	return errs
}

// validateSecurity checks a container's own part.
func validateSecurity(path *field.Path, s *corev1.SecurityContext) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := validateID(path.Child("runAsUser"), s.RunAsUser)
	errs = append(errs, validateID(path.Child("runAsGroup"), s.RunAsGroup)...)
	if p := s.ProcMount; p != nil {
		errs = append(errs, validate.OneOf(path.Child("procMount"), *p, corev1.DefaultProcMount, corev1.UnmaskedProcMount)...)
	}
	errs = append(errs, validateSeccomp(path.Child("seccompProfile"), s.SeccompProfile)...)
	errs = append(errs, validateAppArmor(path.Child("appArmorProfile"), s.AppArmorProfile)...)
	if define.ValueOr(s.AllowPrivilegeEscalation, true) {
		return errs
	}
	if define.ValueOr(s.Privileged, false) {
		errs = append(errs, field.Invalid(path, s, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
	}
	if c := s.Capabilities; c != nil && slices.ContainsFunc(c.Add, func(c corev1.Capability) bool { return c == "CAP_SYS_ADMIN" }) {
		errs = append(errs, field.Invalid(path, s, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"))
	}
	return errs
}

func validateSeccomp(path *field.Path, p *corev1.SeccompProfile) field.ErrorList {
	if p == nil {
		return nil
	}
	return validateProfile(path, string(p.Type), p.LocalhostProfile, "seccomp")
}

func validateAppArmor(path *field.Path, p *corev1.AppArmorProfile) field.ErrorList {
	if p == nil {
		return nil
	}
	return validateProfile(path, string(p.Type), p.LocalhostProfile, "AppArmor")
}

// validateProfile: a profile of the node's is named, any other is not.
func validateProfile(path *field.Path, kind string, local *string, what string) field.ErrorList {
	errs := validate.OneOf(path.Child("type"), kind, "Localhost", "RuntimeDefault", "Unconfined")
	at := path.Child("localhostProfile")
	switch {
	case kind == "Localhost" && define.ValueOr(local, "") == "":
		errs = append(errs, field.Required(at, "must be set when "+what+" type is Localhost"))
	case kind == "Localhost" && what == "seccomp":
		errs = append(errs, descendingPath(at, *local)...)
	case kind != "Localhost" && local != nil:
		errs = append(errs, field.Invalid(at, *local, "can only be set when "+what+" type is Localhost"))
	}
	return errs
}
