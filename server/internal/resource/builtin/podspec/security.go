package podspec

import (
	"regexp"
	"slices"
	"strings"

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
	var errs field.ErrorList
	if s, at := spec.SecurityContext, path.Child("securityContext"); s != nil {
		errs = append(errs, validateID(at.Child("fsGroup"), s.FSGroup)...)
		errs = append(errs, validateID(at.Child("runAsUser"), s.RunAsUser)...)
		errs = append(errs, validateID(at.Child("runAsGroup"), s.RunAsGroup)...)
		for i, group := range s.SupplementalGroups {
			errs = append(errs, validateID(at.Child("supplementalGroups").Index(i), &group)...)
		}
		errs = append(errs, validateSysctls(at.Child("sysctls"), s.Sysctls, spec)...)
		if p := s.FSGroupChangePolicy; p != nil {
			errs = append(errs, validate.Supported(at.Child("fsGroupChangePolicy"), *p, corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways)...)
		}
		errs = append(errs, validateSeccomp(at.Child("seccompProfile"), s.SeccompProfile)...)
		errs = append(errs, validateWindowsOptions(at.Child("windowsOptions"), s.WindowsOptions)...)
		errs = append(errs, validateAppArmor(at.Child("appArmorProfile"), s.AppArmorProfile)...)
		if p := s.SupplementalGroupsPolicy; p != nil {
			errs = append(errs, validate.Supported(at.Child("supplementalGroupsPolicy"), *p, corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)...)
		}
		if p := s.SELinuxChangePolicy; p != nil {
			errs = append(errs, validate.Supported(at.Child("seLinuxChangePolicy"), *p, corev1.SELinuxChangePolicyRecursive, corev1.SELinuxChangePolicyMountOption)...)
		}
	}
	if define.ValueOr(spec.ShareProcessNamespace, false) && spec.HostPID {
		errs = append(errs, field.Invalid(path.Child("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	return errs
}

func validateSysctls(path *field.Path, sysctls []corev1.Sysctl, spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, sysctl := range sysctls {
		at := path.Index(i).Child("name")
		switch {
		case sysctl.Name == "":
			errs = append(errs, field.Required(at, ""))
		case len(sysctl.Name) > sysctlMax || !sysctlName.MatchString(sysctl.Name):
			errs = append(errs, field.Invalid(at, sysctl.Name, "must have at most 253 characters and match regex "+sysctlName.String()))
		case seen.Has(sysctl.Name):
			errs = append(errs, field.Duplicate(at, sysctl.Name))
		}
		seen.Insert(sysctl.Name)
		// What belongs to a namespace that the pod shares with its host is the host's.
		name := strings.ReplaceAll(sysctl.Name, "/", ".")
		switch {
		case spec.HostNetwork && strings.HasPrefix(name, "net."):
			errs = append(errs, field.Invalid(at, sysctl.Name, "may not be specified when 'hostNetwork' is true"))
		case spec.HostIPC && isIPC(name):
			errs = append(errs, field.Invalid(at, sysctl.Name, "may not be specified when 'hostIPC' is true"))
		}
	}
	return errs
}

// isIPC reports whether a sysctl belongs to the IPC namespace.
func isIPC(name string) bool {
	return name == "kernel.sem" || strings.HasPrefix(name, "kernel.shm") || strings.HasPrefix(name, "kernel.msg") || strings.HasPrefix(name, "fs.mqueue.")
}

// validateSecurity checks a container's own part. hostUsers says that its pod has the users of the
// host.
func validateSecurity(path *field.Path, s *corev1.SecurityContext, hostUsers bool) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := validateID(path.Child("runAsUser"), s.RunAsUser)
	errs = append(errs, validateID(path.Child("runAsGroup"), s.RunAsGroup)...)
	if p := s.ProcMount; p != nil {
		errs = append(errs, validate.Supported(path.Child("procMount"), *p, corev1.DefaultProcMount, corev1.UnmaskedProcMount)...)
		if hostUsers && *p == corev1.UnmaskedProcMount {
			errs = append(errs, field.Invalid(path.Child("procMount"), *p, "`hostUsers` must be false to use `Unmasked`"))
		}
	}
	errs = append(errs, validateSeccomp(path.Child("seccompProfile"), s.SeccompProfile)...)
	if !define.ValueOr(s.AllowPrivilegeEscalation, true) {
		if define.ValueOr(s.Privileged, false) {
			errs = append(errs, field.Invalid(path, s, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
		}
		if c := s.Capabilities; c != nil && slices.Contains(c.Add, "CAP_SYS_ADMIN") {
			errs = append(errs, field.Invalid(path, s, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"))
		}
	}
	errs = append(errs, validateWindowsOptions(path.Child("windowsOptions"), s.WindowsOptions)...)
	return append(errs, validateAppArmor(path.Child("appArmorProfile"), s.AppArmorProfile)...)
}

func validateSeccomp(path *field.Path, p *corev1.SeccompProfile) field.ErrorList {
	if p == nil {
		return nil
	}
	var errs field.ErrorList
	if p.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "type is required when seccompProfile is set"))
	} else {
		errs = append(errs, validate.Supported(path.Child("type"), p.Type,
			corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)...)
	}
	at := path.Child("localhostProfile")
	switch local := p.Type == corev1.SeccompProfileTypeLocalhost; {
	case local && p.LocalhostProfile == nil:
		errs = append(errs, field.Required(at, "must be set when seccomp type is Localhost"))
	case local:
		errs = append(errs, descendingPath(at, *p.LocalhostProfile)...)
	case p.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(at, p, "can only be set when seccomp type is Localhost"))
	}
	return errs
}

// maxAppArmorProfile is the longest path that Linux takes.
const maxAppArmorProfile = 4095

func validateAppArmor(path *field.Path, p *corev1.AppArmorProfile) field.ErrorList {
	if p == nil {
		return nil
	}
	at := path.Child("localhostProfile")
	switch p.Type {
	case "":
		return field.ErrorList{field.Required(path.Child("type"), "type is required when appArmorProfile is set")}
	case corev1.AppArmorProfileTypeLocalhost:
		return validateAppArmorName(at, p.LocalhostProfile)
	case corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined:
		if p.LocalhostProfile != nil {
			return field.ErrorList{field.Invalid(at, *p.LocalhostProfile, "can only be set when AppArmor type is Localhost")}
		}
		return nil
	default:
		return validate.Supported(path.Child("type"), p.Type, corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined)
	}
}

func validateAppArmorName(path *field.Path, name *string) field.ErrorList {
	if name == nil {
		return field.ErrorList{field.Required(path, "must be set when AppArmor type is Localhost")}
	}
	var errs field.ErrorList
	switch trimmed := strings.TrimSpace(*name); {
	case trimmed != *name:
		errs = append(errs, field.Invalid(path, *name, "must not be padded with whitespace"))
	case trimmed == "":
		errs = append(errs, field.Required(path, "must be set when AppArmor type is Localhost"))
	}
	if len(*name) > maxAppArmorProfile {
		errs = append(errs, field.TooLong(path, "", maxAppArmorProfile))
	}
	return errs
}
