package customresource

import (
	"crypto/x509"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// structuralCondition returns the condition NonStructuralSchema of a definition that
// violates the rules of structural schemas, as definitions from before
// apiextensions.k8s.io/v1 may. Others are refused when they are written, so the
// schemas are read only of definitions that may be such ones: a server with many
// starts as fast as one with none.
func structuralCondition(crd *crdMeta) (c apiextensionsv1.CustomResourceDefinitionCondition, ok bool) {
	has := func(kind apiextensionsv1.CustomResourceDefinitionConditionType) bool {
		return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool { return c.Type == kind })
	}
	if !crd.Spec.PreserveUnknownFields && !has(apiextensionsv1.NonStructuralSchema) && has(apiextensionsv1.NamesAccepted) {
		return c, false
	}
	c.Type, c.Status, c.Reason = apiextensionsv1.NonStructuralSchema, apiextensionsv1.ConditionTrue, "Violations"
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if crd.Spec.PreserveUnknownFields {
		errs = append(errs, field.Invalid(spec.Child("preserveUnknownFields"), true, "must be false"))
	}
	for i := range crd.Spec.Versions {
		found, err := structuralErrors(crd, crd.Spec.Versions[i].Name, spec.Child("versions").Index(i).Child("schema", "openAPIV3Schema"))
		if err != nil {
			c.Status, c.Reason = apiextensionsv1.ConditionUnknown, "StructuralError"
			c.Message = fmt.Sprintf("failed to check validation schema for version %s: %v", crd.Spec.Versions[i].Name, err)
			return c, true
		}
		errs = append(errs, found...)
	}
	if len(errs) == 0 {
		return apiextensionsv1.CustomResourceDefinitionCondition{}, false
	}
	c.Message = errs.ToAggregate().Error()
	return c, true
}

// structuralErrors returns what is not structural in the schema of a version.
func structuralErrors(crd *crdMeta, version string, at *field.Path) (field.ErrorList, error) {
	props, err := crd.schemas.read(version)
	if err != nil || props == nil {
		return nil, err
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		return nil, err
	}
	nodes, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	return structuralschema.ValidateStructural(at, nodes), nil
}

// hasInvalidCABundle reports whether the certificates by which the definition's
// conversion webhook is known cannot be read.
func hasInvalidCABundle(crd *crdMeta) bool {
	c := crd.Spec.Conversion
	if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil || len(c.Webhook.ClientConfig.CABundle) == 0 {
		return false
	}
	return !x509.NewCertPool().AppendCertsFromPEM(c.Webhook.ClientConfig.CABundle)
}
