package openapi

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Foreign is the description of version 2 by another server, which serves one group and
// version that is part of the API.
type Foreign struct {
	Version  schema.GroupVersion
	Document []byte // in JSON
}

// mergeInto adds the group and version to a description. Models of the same name that say
// something else are renamed. A document that cannot be read, or cannot be merged, adds
// nothing: what other servers say must not take away the description of this one.
func (f Foreign) mergeInto(described *spec.Swagger) {
	var other spec.Swagger
	if other.UnmarshalJSON(f.Document) != nil || other.Paths == nil {
		return
	}
	only := aggregator.FilterSpecByPathsWithoutSideEffects(&other, []string{"/apis/" + f.Version.String() + "/"})
	_ = aggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(described, only)
}
