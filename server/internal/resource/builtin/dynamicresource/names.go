package dynamicresource

import (
	"context"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	tags "k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// maxQualifiedName is how many bytes of the name of an attribute or capacity are shown.
const maxQualifiedName = resourcev1.DeviceMaxDomainLength + len("/") + resourcev1.DeviceMaxIDLength

// tag is a check of the library that kube-apiserver makes for tags in the types.
type tag func(context.Context, operation.Operation, *field.Path, *string, *string) field.ErrorList

var (
	shortName          tag = tags.ShortName[string]
	longName           tag = tags.LongName[string]
	labelKey           tag = tags.LabelKey[string]
	poolName           tag = tags.ResourcePoolName[string]
	uuid               tag = tags.UUID[string]
	extendedResource   tag = tags.ExtendedResourceName[string]
	fullyQualifiedName tag = tags.ResourceFullyQualifiedName[string]
	driverName         tag = func(ctx context.Context, op operation.Operation, at *field.Path, name, _ *string) field.ErrorList {
		errs := tags.LongNameCaseless(ctx, op, at, name, nil) //nolint:staticcheck // The types of Kubernetes have this tag.
		return append(errs, tags.MaxLength(ctx, op, at, name, nil, resourcev1.DriverNameMaxLength)...)
	}
)

func (t tag) check(at *field.Path, value string) field.ErrorList {
	return t(context.Background(), operation.Operation{Type: operation.Create}, at, &value, nil)
}

// required checks a value that has to be there.
func (t tag) required(at *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return t.check(at, value)
}

// present checks a value that need not be there.
func present[T ~string](t tag, at *field.Path, value *T) field.ErrorList {
	if value == nil {
		return nil
	}
	return t.check(at, string(*value))
}

// validateDriver checks the name of a driver where no tag does, which has the rules for those of storage.
func validateDriver(at *field.Path, name string) field.ErrorList {
	return podspec.CSIDriverName(at, name)
}

// validateLabel checks the name of a request, device or counter, which is there.
func validateLabel(at *field.Path, name string) field.ErrorList {
	return validate.Invalid(at, name, validation.IsDNS1123Label(name))
}

// validatePool checks the name of a pool where no tag does.
func validatePool(at *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	if len(name) > resourcev1.PoolNameMaxLength {
		errs = append(errs, field.TooLong(at, "", resourcev1.PoolNameMaxLength))
	}
	for part := range strings.SplitSeq(name, "/") {
		errs = append(errs, validate.Invalid(at, part, validation.IsDNS1123Subdomain(part))...)
	}
	return errs
}

// validateQualified checks the name of an attribute or capacity, whose domain may be left out. kube-apiserver does
// not look at a name with several slashes.
func validateQualified(at *field.Path, name resourcev1.QualifiedName) field.ErrorList {
	parts := strings.Split(string(name), "/")
	switch len(parts) {
	case 1:
		return validateIdentifier(at, parts[0])
	case 2:
		var errs field.ErrorList
		if parts[0] == "" {
			errs = append(errs, field.Invalid(at, "", "the domain must not be empty"))
		} else {
			errs = append(errs, validateDriver(at, parts[0])...)
		}
		if parts[1] == "" {
			return append(errs, field.Invalid(at, "", "the name must not be empty"))
		}
		return append(errs, validateIdentifier(at, parts[1])...)
	}
	return nil
}

func validateIdentifier(at *field.Path, id string) field.ErrorList {
	var errs field.ErrorList
	if len(id) > resourcev1.DeviceMaxIDLength {
		errs = append(errs, field.TooLong(at, "", resourcev1.DeviceMaxIDLength))
	}
	return append(errs, validate.Invalid(at, id, content.IsCIdentifier(id))...)
}
