package storage

import (
	"unicode/utf8"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	maxAttacher        = 63
	maxAttachmentBytes = 256 << 10
	maxErrorMessage    = 1024
)

func volumeAttachmentRules() define.Rules[*storagev1.VolumeAttachment] {
	return define.Rules[*storagev1.VolumeAttachment]{
		Default: func(a *storagev1.VolumeAttachment) {
			if inline := a.Spec.Source.InlineVolumeSpec; inline != nil {
				podspec.DefaultPersistentSource(&inline.PersistentVolumeSource)
				podspec.RoundAmounts(inline.Capacity)
			}
		},
		ValidateCreate: func(a *storagev1.VolumeAttachment) field.ErrorList {
			return append(validateAttachment(a), validateAttacher(attacherPath, a.Spec.Attacher)...)
		},
		ValidateUpdate: func(a, old *storagev1.VolumeAttachment) field.ErrorList {
			// The attacher comes first here: a spec that has changed hides what its tags say of it.
			errs := append(podspec.CSIDriverName(attacherPath, a.Spec.Attacher), validateAttachment(a)...)
			return append(errs, validate.UnchangedUnsaid(validate.SpecPath, a.Spec, old.Spec)...)
		},
		ValidateStatus: func(a, _ *storagev1.VolumeAttachment) field.ErrorList {
			return validateAttachmentStatus(field.NewPath("status"), &a.Status)
		},
	}
}

func validateAttachment(a *storagev1.VolumeAttachment) field.ErrorList {
	errs := validateAttachedSource(validate.SpecPath.Child("source"), a.Spec.Source)
	errs = append(errs, validate.Invalid(validate.SpecPath.Child("nodeName"), a.Spec.NodeName, validation.IsDNS1123Subdomain(a.Spec.NodeName))...)
	errs = append(errs, validateAttachmentStatus(field.NewPath("status"), &a.Status)...)
	if name := a.Spec.Source.PersistentVolumeName; name != nil {
		errs = append(errs, validate.Invalid(field.NewPath("spec.source.persistentVolumeName"), *name, validation.IsDNS1123Subdomain(*name))...)
	}
	return errs
}

var attacherPath = validate.SpecPath.Child("attacher")

// validateAttacher checks the name of the driver of a new attachment as podspec.CSIDriverName does.
// kube-apiserver has these rules in the tags of the type, too, whose words a creator sees.
func validateAttacher(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := validate.Invalid(path, name, content.IsDNS1123SubdomainCaseless(name)) //nolint:staticcheck // Kubernetes takes capitals in the names of drivers.
	if utf8.RuneCountInString(name) > maxAttacher {
		errs = append(errs, field.TooLongCharacters(path, name, maxAttacher))
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
