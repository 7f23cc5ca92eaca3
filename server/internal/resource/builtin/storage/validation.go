package storage

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	maxParameters          = 512
	maxParameterBytes      = 256 << 10
	maxAttachmentBytes     = 256 << 10
	maxErrorMessage        = 1024
	maxNodeID              = 256
	minUpdatePeriodSeconds = 10
	minTokenSeconds        = 600
	maxTokenSeconds        = 1 << 32
)

// validateProvisioner checks the name of what makes volumes, in which capitals may be.
func validateProvisioner(at *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	name = strings.ToLower(name)
	return validate.Invalid(at, name, validation.IsQualifiedName(name))
}

func validateParameters(parameters map[string]string, mayBeEmpty bool) field.ErrorList {
	at := field.NewPath("parameters")
	if len(parameters) > maxParameters {
		return field.ErrorList{field.TooLong(at, "", maxParameters)}
	}
	var errs field.ErrorList
	if _, ok := parameters[""]; ok {
		errs = append(errs, field.Invalid(at, "", "field can not be empty."))
	}
	if bytesOf(parameters) > maxParameterBytes {
		errs = append(errs, field.TooLong(at, "", maxParameterBytes))
	}
	if len(parameters) == 0 && !mayBeEmpty {
		errs = append(errs, field.Required(at, "must contain at least one key/value pair"))
	}
	return errs
}

func bytesOf(values map[string]string) int {
	size := 0
	for key, value := range values {
		size += len(key) + len(value)
	}
	return size
}

// validateTopologies checks terms, none of which may say the same as one before it.
func validateTopologies(at *field.Path, terms []corev1.TopologySelectorTerm) field.ErrorList {
	var errs field.ErrorList
	var before []map[string]sets.Set[string]
	for i, term := range terms {
		keys := map[string]sets.Set[string]{}
		for j, requirement := range term.MatchLabelExpressions {
			path := at.Index(i).Child("matchLabelExpressions").Index(j)
			values := sets.New[string]()
			if len(requirement.Values) == 0 {
				errs = append(errs, field.Required(path.Child("values"), ""))
			}
			for k, value := range requirement.Values {
				if values.Has(value) {
					errs = append(errs, field.Duplicate(path.Child("values").Index(k), value))
				}
				values.Insert(value)
			}
			errs = append(errs, metavalidation.ValidateLabelName(requirement.Key, path.Child("key"))...)
			if keys[requirement.Key] != nil {
				errs = append(errs, field.Duplicate(path.Child("key"), requirement.Key))
			}
			keys[requirement.Key] = values
		}
		same := func(other map[string]sets.Set[string]) bool {
			return maps.EqualFunc(keys, other, sets.Set[string].Equal)
		}
		if slices.ContainsFunc(before, same) || len(keys) == 0 { // kube-apiserver finds a term without keys the same as none
			errs = append(errs, field.Duplicate(at.Index(i).Child("matchLabelExpressions"), ""))
		}
		before = append(before, keys)
	}
	return errs
}

func validateAttachedSource(at *field.Path, source storagev1.VolumeAttachmentSource) field.ErrorList {
	const exactlyOne = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
	switch inline, name := source.InlineVolumeSpec, source.PersistentVolumeName; {
	case inline == nil && name == nil:
		return field.ErrorList{field.Required(at, exactlyOne)}
	case inline != nil && name != nil:
		return field.ErrorList{field.Forbidden(at, exactlyOne)}
	case name != nil && *name == "":
		return field.ErrorList{field.Required(at.Child("persistentVolumeName"), "must specify non empty persistentVolumeName")}
	case inline != nil:
		return podspec.ValidateInlineVolume(at.Child("inlineVolumeSpec"), inline)
	}
	return nil
}

func validateAttachmentStatus(at *field.Path, status *storagev1.VolumeAttachmentStatus) field.ErrorList {
	var errs field.ErrorList
	if bytesOf(status.AttachmentMetadata) > maxAttachmentBytes {
		errs = append(errs, field.TooLong(at.Child("attachmentMetadata"), "", maxAttachmentBytes))
	}
	errs = append(errs, validateVolumeError(at.Child("attachError"), status.AttachError)...)
	return append(errs, validateVolumeError(at.Child("detachError"), status.DetachError)...)
}

func validateVolumeError(at *field.Path, e *storagev1.VolumeError) field.ErrorList {
	if e == nil {
		return nil
	}
	var errs field.ErrorList
	if len(e.Message) > maxErrorMessage {
		errs = append(errs, field.TooLong(at.Child("message"), "", maxErrorMessage))
	}
	return append(errs, validate.AtLeast(at.Child("errorCode"), e.ErrorCode, 0)...)
}

func validateNodeDriver(at *field.Path, d storagev1.CSINodeDriver) field.ErrorList {
	errs := validate.Required(at.Child("nodeID"), d.NodeID)
	if len(d.NodeID) > maxNodeID {
		errs = append(errs, field.Invalid(at.Child("nodeID"), d.NodeID, "must be 256 characters or less"))
	}
	if d.Allocatable != nil {
		errs = append(errs, validate.NotNegative(at.Child("allocatable", "count"), d.Allocatable.Count)...)
	}
	return errs
}

func validateTopologyKeys(at *field.Path, keys []string) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for _, key := range keys {
		errs = append(errs, validate.Required(at, key)...)
		if seen.Has(key) {
			errs = append(errs, field.Duplicate(at, key))
		}
		seen.Insert(key)
		errs = append(errs, validate.Invalid(at, key, validation.IsQualifiedName(key))...)
	}
	return errs
}

func validateTokenRequests(at *field.Path, requests []storagev1.TokenRequest) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, request := range requests {
		if seen.Has(request.Audience) {
			errs = append(errs, field.Duplicate(at.Index(i).Child("audience"), request.Audience))
			continue
		}
		seen.Insert(request.Audience)
		expiration := at.Index(i).Child("expirationSeconds")
		switch seconds := request.ExpirationSeconds; {
		case seconds == nil:
		case *seconds < minTokenSeconds:
			errs = append(errs, field.Invalid(expiration, *seconds, "may not specify a duration less than 10 minutes"))
		case *seconds > maxTokenSeconds:
			errs = append(errs, field.Invalid(expiration, *seconds, "may not specify a duration larger than 2^32 seconds"))
		}
	}
	return errs
}
