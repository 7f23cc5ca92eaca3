package podspec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// visitContainers calls visit for each container, in kube-apiserver's order.
func visitContainers(path *field.Path, spec *corev1.PodSpec, visit func(path *field.Path, c *corev1.Container)) {
	for i := range spec.InitContainers {
		visit(path.Child("initContainers").Index(i), &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		visit(path.Child("containers").Index(i), &spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		visit(path.Child("ephemeralContainers").Index(i), (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
}

// validateWindowsOptions checks what a pod or a container says for Windows.
func validateWindowsOptions(path *field.Path, o *corev1.WindowsSecurityContextOptions) field.ErrorList {
	if o == nil {
		return nil
	}
	const maxCredentials = 64 << 10
	var errs field.ErrorList
	if name := o.GMSACredentialSpecName; name != nil {
		errs = append(errs, validate.Invalid(path.Child("gmsaCredentialSpecName"), *name, validation.IsDNS1123Subdomain(*name))...)
	}
	at := path.Child("gmsaCredentialSpec")
	switch credentials := o.GMSACredentialSpec; {
	case credentials == nil:
	case *credentials == "":
		errs = append(errs, field.Invalid(at, *credentials, "gmsaCredentialSpec cannot be an empty string"))
	case len(*credentials) > maxCredentials:
		errs = append(errs, field.Invalid(at, *credentials, "gmsaCredentialSpec size must be under 64 KiB"))
	}
	if o.RunAsUserName != nil {
		errs = append(errs, validate.Invalid(path.Child("runAsUserName"), *o.RunAsUserName, windowsUser(*o.RunAsUserName))...)
	}
	return errs
}

var (
	netBIOSName   = regexp.MustCompile(`^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$`)
	windowsDomain = regexp.MustCompile(`^[0-9A-Za-z]([-0-9A-Za-z]{0,61}[0-9A-Za-z])?(\.[0-9A-Za-z]([-0-9A-Za-z]{0,61}[0-9A-Za-z])?)*$`)
)

// windowsUser says what is wrong with the name of a user, before which its domain may stand.
func windowsUser(name string) []string {
	const maxDomain, maxUser = 256, 104
	if name == "" {
		return []string{"runAsUserName cannot be an empty string"}
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return []string{"runAsUserName cannot contain control characters"}
	}
	if strings.Count(name, `\`) > 1 {
		return []string{"runAsUserName cannot contain more than one backslash"}
	}
	domain, user, qualified := strings.Cut(name, `\`)
	if !qualified {
		domain, user = "", name
	}
	var messages []string
	if len(domain) >= maxDomain {
		messages = append(messages, fmt.Sprintf("runAsUserName's Domain length must be under %d characters", maxDomain))
	}
	if qualified && !netBIOSName.MatchString(domain) && !windowsDomain.MatchString(domain) {
		messages = append(messages, "runAsUserName's Domain doesn't match the NetBios nor the DNS format")
	}
	switch {
	case user == "":
		messages = append(messages, "runAsUserName's User cannot be empty")
	case len(user) > maxUser:
		messages = append(messages, fmt.Sprintf("runAsUserName's User length must not be longer than %d characters", maxUser))
	}
	if user != "" && strings.Trim(user, ". ") == "" {
		messages = append(messages, "runAsUserName's User cannot contain only periods or spaces")
	}
	if strings.ContainsAny(user, `"/\:;|=,+*?<>@[]`) {
		messages = append(messages, `runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]`)
	}
	return messages
}

// validateHostProcess: a pod runs as processes of a Windows host with all its containers or with
// none.
func validateHostProcess(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	if !hasWindowsOptions(spec) {
		return nil // so that others cost no paths
	}
	var errs field.ErrorList
	var all *bool
	if s := spec.SecurityContext; s != nil && s.WindowsOptions != nil {
		all = s.WindowsOptions.HostProcess
	}
	containers, hostProcesses := 0, 0
	visitContainers(path, spec, func(at *field.Path, c *corev1.Container) {
		containers++
		var own *bool
		if s := c.SecurityContext; s != nil && s.WindowsOptions != nil {
			own = s.WindowsOptions.HostProcess
		}
		if all != nil && own != nil && *all != *own {
			errs = append(errs, field.Invalid(at.Child("securityContext", "windowsOptions", "hostProcess"), *own,
				fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", *all)))
		}
		if define.ValueOr(own, define.ValueOr(all, false)) {
			hostProcesses++
		}
	})
	if hostProcesses == 0 {
		return errs
	}
	if hostProcesses != containers {
		errs = append(errs, field.Invalid(path, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers"))
	}
	if !spec.HostNetwork {
		errs = append(errs, field.Invalid(path.Child("hostNetwork"), false, "hostNetwork must be true if pod contains any hostProcess containers"))
	}
	return errs
}

func hasWindowsOptions(spec *corev1.PodSpec) bool {
	if s := spec.SecurityContext; s != nil && s.WindowsOptions != nil {
		return true
	}
	has := func(s *corev1.SecurityContext) bool { return s != nil && s.WindowsOptions != nil }
	return slices.ContainsFunc(spec.InitContainers, func(c corev1.Container) bool { return has(c.SecurityContext) }) ||
		slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return has(c.SecurityContext) }) ||
		slices.ContainsFunc(spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return has(c.SecurityContext) })
}

// validateOS checks the operating system, and that nothing is set that it does not have.
func validateOS(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	switch at, os := path.Child("os"), spec.OS; {
	case os == nil:
		return nil
	case os.Name == "":
		return field.ErrorList{field.Required(at.Child("name"), "")}
	case os.Name == corev1.Linux:
		return notOnLinux(path, spec)
	case os.Name == corev1.Windows:
		return notOnWindows(path, spec)
	default:
		return validate.OneOf(at, os.Name, corev1.Linux, corev1.Windows)
	}
}

func notOnLinux(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	const why = "windows options cannot be set for a linux pod"
	var errs field.ErrorList
	if s := spec.SecurityContext; s != nil && s.WindowsOptions != nil {
		errs = append(errs, field.Forbidden(path.Child("securityContext", "windowsOptions"), why))
	}
	visitContainers(path, spec, func(at *field.Path, c *corev1.Container) {
		if s := c.SecurityContext; s != nil && s.WindowsOptions != nil {
			errs = append(errs, field.Forbidden(at.Child("securityContext", "windowsOptions"), why))
		}
	})
	return errs
}

func notOnWindows(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	forbid := func(at *field.Path, name string, set bool) {
		if set {
			errs = append(errs, field.Forbidden(at.Child(name), "cannot be set for a windows pod"))
		}
	}
	if s, at := spec.SecurityContext, path.Child("securityContext"); s != nil {
		forbid(at, "appArmorProfile", s.AppArmorProfile != nil)
		forbid(at, "seLinuxOptions", s.SELinuxOptions != nil)
		forbid(at, "seccompProfile", s.SeccompProfile != nil)
		forbid(at, "fsGroup", s.FSGroup != nil)
		forbid(at, "fsGroupChangePolicy", s.FSGroupChangePolicy != nil)
		forbid(at, "sysctls", len(s.Sysctls) > 0)
		forbid(at, "runAsUser", s.RunAsUser != nil)
		forbid(at, "runAsGroup", s.RunAsGroup != nil)
		forbid(at, "supplementalGroups", s.SupplementalGroups != nil)
		forbid(at, "supplementalGroupsPolicy", s.SupplementalGroupsPolicy != nil)
		forbid(at, "seLinuxChangePolicy", s.SELinuxChangePolicy != nil)
	}
	forbid(path, "hostUsers", spec.HostUsers != nil)
	forbid(path, "hostPID", spec.HostPID)
	forbid(path, "hostIPC", spec.HostIPC)
	forbid(path, "shareProcessNamespace", spec.ShareProcessNamespace != nil)
	visitContainers(path, spec, func(at *field.Path, c *corev1.Container) {
		s, at := c.SecurityContext, at.Child("securityContext")
		if s == nil {
			return
		}
		forbid(at, "appArmorProfile", s.AppArmorProfile != nil)
		forbid(at, "seLinuxOptions", s.SELinuxOptions != nil)
		forbid(at, "seccompProfile", s.SeccompProfile != nil)
		forbid(at, "capabilities", s.Capabilities != nil)
		forbid(at, "readOnlyRootFilesystem", s.ReadOnlyRootFilesystem != nil)
		forbid(at, "privileged", s.Privileged != nil)
		forbid(at, "allowPrivilegeEscalation", s.AllowPrivilegeEscalation != nil)
		forbid(at, "procMount", s.ProcMount != nil)
		forbid(at, "runAsUser", s.RunAsUser != nil)
		forbid(at, "runAsGroup", s.RunAsGroup != nil)
	})
	return errs
}
