package eventratelimit

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/configfile"
)

// Scope is the events that share a bucket.
type Scope string

// The scopes.
const (
	// Server is all events.
	Server Scope = "Server"
	// Namespace is the events in a namespace.
	Namespace Scope = "Namespace"
	// User is the events that a user writes.
	User Scope = "User"
	// SourceAndObject is the events of a component on a host about an object.
	SourceAndObject Scope = "SourceAndObject"
)

var scopes = []Scope{Namespace, Server, SourceAndObject, User}

// Limit is the rate that is allowed for the events of a scope.
type Limit struct {
	Type Scope `json:"type"`
	// QPS is how many events a second are allowed when Burst is used up.
	QPS int32 `json:"qps"`
	// Burst is how many events are allowed at once.
	Burst int32 `json:"burst"`
	// CacheSize is how many namespaces, users, or sources and objects are remembered: the
	// one that has been silent for longest is forgotten, and may use its burst again.
	// Default 4096. Server has no use for it.
	CacheSize int32 `json:"cacheSize"`
}

// defaultCacheSize is Kubernetes'.
const defaultCacheSize = 4096

// Config is all limits.
type Config struct {
	metav1.TypeMeta `json:",inline"`
	Limits          []Limit `json:"limits"`
}

// ParseConfig reads a Configuration of eventratelimit.admission.k8s.io/v1alpha1. There
// must be limits in it.
func ParseConfig(data []byte) (*Config, error) {
	if err := configfile.CheckKind(data, "Configuration", "eventratelimit.admission.k8s.io/v1alpha1"); err != nil {
		return nil, err
	}
	config := &Config{}
	if err := yaml.UnmarshalStrict(data, config); err != nil {
		return nil, err
	}
	return config, config.validate().ToAggregate()
}

func (c *Config) validate() field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("limits")
	if len(c.Limits) == 0 {
		errs = append(errs, field.Required(path, "must not be empty"))
	}
	for i, limit := range c.Limits {
		at := path.Index(i)
		if !slices.Contains(scopes, limit.Type) {
			errs = append(errs, field.NotSupported(at.Child("type"), limit.Type, scopes))
		}
		for name, value := range map[string]int32{"burst": limit.Burst, "qps": limit.QPS} {
			if value <= 0 {
				errs = append(errs, field.Invalid(at.Child(name), value, "must be positive"))
			}
		}
		if limit.CacheSize < 0 {
			errs = append(errs, field.Invalid(at.Child("cacheSize"), limit.CacheSize, "must not be negative"))
		}
	}
	return errs
}
