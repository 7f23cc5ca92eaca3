package podsecurity

import (
	"fmt"
	"slices"

	admissionapi "k8s.io/pod-security-admission/admission/api"
	"k8s.io/pod-security-admission/admission/api/load"
	"k8s.io/pod-security-admission/admission/api/validation"
	"k8s.io/pod-security-admission/api"
)

// Config is what applies to all namespaces.
type Config struct {
	// defaults apply to namespaces without labels.
	defaults   api.Policy
	exemptions admissionapi.PodSecurityExemptions
}

// ParseConfig reads a PodSecurityConfiguration of pod-security.admission.config.k8s.io.
// Without data it returns Kubernetes' defaults: all is privileged, nothing is exempt.
func ParseConfig(data []byte) (Config, error) {
	read, err := load.LoadFromData(data)
	if err != nil {
		return Config{}, err
	}
	if errs := validation.ValidatePodSecurityConfiguration(read); len(errs) > 0 {
		return Config{}, errs.ToAggregate()
	}
	defaults, err := admissionapi.ToPolicy(read.Defaults)
	if err != nil {
		return Config{}, fmt.Errorf("defaults: %w", err)
	}
	return Config{defaults: defaults, exemptions: read.Exemptions}, nil
}

func (c Config) exemptsNamespace(name string) bool {
	return name != "" && slices.Contains(c.exemptions.Namespaces, name)
}

func (c Config) exemptsUser(name string) bool {
	return name != "" && slices.Contains(c.exemptions.Usernames, name)
}

func (c Config) exemptsRuntimeClass(name *string) bool {
	return name != nil && *name != "" && slices.Contains(c.exemptions.RuntimeClasses, *name)
}
