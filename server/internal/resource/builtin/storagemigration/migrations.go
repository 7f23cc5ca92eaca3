package storagemigration

import (
	"strings"

	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func migrationRules() define.Rules[*storagemigrationv1.StorageVersionMigration] {
	return define.Rules[*storagemigrationv1.StorageVersionMigration]{
		PrepareForCreate: func(m *storagemigrationv1.StorageVersionMigration) {
			m.Status = storagemigrationv1.StorageVersionMigrationStatus{}
		},
		Validate: validateMigration,
		ValidateUpdate: func(m, old *storagemigrationv1.StorageVersionMigration) field.ErrorList {
			return validate.Unchanged(validate.SpecPath, m.Spec, old.Spec)
		},
		ValidateStatus: validateMigrationStatus,
	}
}

func validateMigration(m *storagemigrationv1.StorageVersionMigration) field.ErrorList {
	at := validate.SpecPath.Child("resource")
	var errs field.ErrorList
	group, plural := m.Spec.Resource.Group, m.Spec.Resource.Resource
	if plural == "" {
		errs = append(errs, field.Required(at.Child("resource"), "resource is required to be set"))
	} else if messages := validation.IsDNS1035Label(plural); len(messages) > 0 {
		errs = append(errs, field.Invalid(at.Child("resource"), plural, strings.Join(messages, ",")))
	}
	if group != "" {
		if messages := validation.IsDNS1123Subdomain(group); len(messages) > 0 {
			errs = append(errs, field.Invalid(at.Child("group"), group, strings.Join(messages, ",")))
		}
	}
	return errs
}

// validateMigrationStatus: a migration begins at one version, and ends once.
func validateMigrationStatus(m, old *storagemigrationv1.StorageVersionMigration) field.ErrorList {
	at := field.NewPath("status")
	version, conditions := at.Child("resourceVersion"), at.Child("conditions")
	var errs field.ErrorList
	if v := m.Status.ResourceVersion; v != "" {
		if _, err := resourceversion.CompareResourceVersion(v, v); err != nil {
			errs = append(errs, field.Invalid(version, v, err.Error()))
		}
	}
	errs = append(errs, metavalidation.ValidateConditions(m.Status.Conditions, conditions)...)
	if was := old.Status.ResourceVersion; was != "" && was != m.Status.ResourceVersion {
		errs = append(errs, field.Invalid(version, m.Status.ResourceVersion, "field is immutable"))
	}
	succeeded, failed := hasCome(m, storagemigrationv1.MigrationSucceeded), hasCome(m, storagemigrationv1.MigrationFailed)
	if succeeded && failed {
		errs = append(errs, field.Invalid(conditions, m.Status.Conditions, "Both success and failed conditions cannot be true at the same time"))
	}
	if hasCome(old, storagemigrationv1.MigrationSucceeded) && !succeeded {
		errs = append(errs, field.Invalid(conditions, m.Status.Conditions, "Success condition cannot be set to false once it is true"))
	}
	if hasCome(old, storagemigrationv1.MigrationFailed) && !failed {
		errs = append(errs, field.Invalid(conditions, m.Status.Conditions, "Failed condition cannot be set to false once it is true"))
	}
	return errs
}

func hasCome(m *storagemigrationv1.StorageVersionMigration, end storagemigrationv1.MigrationConditionType) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, string(end))
}
