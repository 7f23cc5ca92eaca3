package customresource

import (
	"context"
	"fmt"
	"maps"
	"math"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// validateNames checks the names of a new object. The registry refuses a missing name.
func validateNames(obj resource.Object, isNew bool) field.ErrorList {
	var errs field.ErrorList
	check := func(part, name string, prefix bool) {
		if !isNew || name == "" {
			return
		}
		for _, message := range apivalidation.NameIsDNSSubdomain(name, prefix) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", part), name, message))
		}
	}
	check("generateName", obj.GetGenerateName(), true)
	check("name", obj.GetName(), false)
	return errs
}

// validateCreate checks a new object.
func (v *version) validateCreate(u *unstructured.Unstructured) field.ErrorList {
	nodes, checks, errs := v.ready(u)
	if len(errs) > 0 {
		return errs
	}
	if dear := v.schema.cost.check(nil, u.Object, v.schema.props); dear != nil {
		return dear
	}
	if wrong := v.schema.wrongElements(nil, u.Object, v.schema.props); wrong != nil {
		return wrong
	}
	errs = append(errs, validation.ValidateCustomResource(nil, u.Object, checks.whole)...)
	errs = append(errs, v.validateScale(u, true)...)
	errs = append(errs, objectmeta.Validate(context.Background(), nil, u.Object, nodes, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, nodes, u.Object)...)
	return append(errs, v.runRules(checks, nodes, u, nil, errs)...)
}

// validateUpdate checks a change. Fields that were invalid before and have not
// changed may stay (KEP-4008).
func (v *version) validateUpdate(u, old *unstructured.Unstructured) field.ErrorList {
	nodes, checks, errs := v.ready(u)
	if len(errs) > 0 {
		return errs
	}
	if dear := v.schema.cost.check(nil, u.Object, v.schema.props); dear != nil {
		if sameContent(u, old) {
			return nil // so that it loses its finalizers
		}
		return dear
	}
	if wrong := v.schema.newlyWrong(nil, u.Object, old.Object, v.schema.props); wrong != nil {
		return wrong
	}
	correlated := common.NewCorrelatedObject(u.Object, old.Object, &model.Structural{Structural: nodes})
	errs = append(errs, validation.ValidateCustomResourceUpdate(nil, u.Object, old.Object, checks.whole, validation.WithRatcheting(correlated))...)
	errs = append(errs, v.validateScale(u, true)...)
	errs = append(errs, objectmeta.Validate(context.Background(), nil, u.Object, nodes, false)...)
	errs = append(errs, listErrors(nodes, u, old)...)
	return append(errs, v.runRules(checks, nodes, u, old, errs, cel.WithRatcheting(correlated))...)
}

// sameContent reports whether two objects differ in their metadata only.
func sameContent(a, b *unstructured.Unstructured) bool {
	x, y := maps.Clone(a.Object), maps.Clone(b.Object)
	delete(x, "metadata")
	delete(y, "metadata")
	return equality.Semantic.DeepEqual(x, y)
}

// validateStatus checks a write to the status endpoint, which changes only the
// status.
func (v *version) validateStatus(u, old *unstructured.Unstructured) field.ErrorList {
	nodes, checks, errs := v.ready(u)
	if len(errs) > 0 {
		return errs
	}
	correlated := common.NewCorrelatedObject(u.Object, old.Object, &model.Structural{Structural: nodes})
	var options []validation.ValidationOption
	if nodes != nil {
		options = append(options, validation.WithRatcheting(correlated.Key("status")))
	}
	if status, ok := u.Object["status"]; ok {
		if dear := v.schema.cost.check(field.NewPath("status"), status, statusProps(v.schema.props)); dear != nil {
			if sameContent(u, old) {
				return nil
			}
			return dear
		}
		if wrong := v.schema.newlyWrong(field.NewPath("status"), status, old.Object["status"], statusProps(v.schema.props)); wrong != nil {
			return wrong
		}
		errs = append(errs, validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old.Object["status"], checks.status, options...)...)
	}
	errs = append(errs, v.validateScale(u, false)...)
	errs = append(errs, listErrors(nodes, u, old)...)
	return append(errs, v.runRules(checks, nodes, u, old, errs, cel.WithRatcheting(correlated))...)
}

// ready compiles what the checks need, and compares kind and version.
func (v *version) ready(u *unstructured.Unstructured) (*structuralschema.Structural, checks, field.ErrorList) {
	var errs field.ErrorList
	if kind := u.GetKind(); kind != v.kind.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), kind, "must be "+v.kind.Kind))
	}
	if is := u.GetAPIVersion(); is != v.apiVersion() {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), is, "must be "+v.apiVersion()))
	}
	if len(errs) > 0 {
		return nil, checks{}, errs
	}
	nodes, err := v.schema.structural()
	if err != nil {
		return nil, checks{}, field.ErrorList{field.InternalError(nil, err)}
	}
	compiled, err := v.schema.validators()
	if err != nil {
		return nil, checks{}, field.ErrorList{field.InternalError(nil, err)}
	}
	return nodes, compiled, nil
}

// listErrors checks that sets hold no element twice and maps no key twice. A list
// that was invalid before may stay so.
func listErrors(nodes *structuralschema.Structural, u, old *unstructured.Unstructured) field.ErrorList {
	errs := listtype.ValidateListSetsAndMaps(nil, nodes, u.Object)
	if len(errs) > 0 && len(listtype.ValidateListSetsAndMaps(nil, nodes, old.Object)) > 0 {
		return nil
	}
	return errs
}

// rulesTimeout bounds the evaluation of all rules. Costs do that, too, but those of a comparison do not depend on how
// large the objects are that it compares.
const rulesTimeout = 20 * time.Second

// runRules evaluates x-kubernetes-validations, unless the object does not match its
// schema, on which the rules rely.
func (v *version) runRules(c checks, nodes *structuralschema.Structural, u, old *unstructured.Unstructured, found field.ErrorList, options ...cel.Option) field.ErrorList {
	if c.rules == nil {
		return nil
	}
	for _, err := range found {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")}
		}
	}
	var before any
	if old != nil {
		before = old.Object
	}
	ctx, cancel := context.WithTimeout(context.Background(), rulesTimeout)
	defer cancel()
	errs, _ := c.rules.Validate(ctx, nil, nodes, u.Object, before, celconfig.RuntimeCELCostBudget, options...)
	return errs
}

// validateScale checks the fields that the scale subresource shows. spec says that
// the wanted replicas are checked, too.
func (v *version) validateScale(u *unstructured.Unstructured, spec bool) field.ErrorList {
	s := v.scaleSpec()
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	if spec {
		errs = append(errs, validateReplicas(u, s.SpecReplicasPath)...)
	}
	errs = append(errs, validateReplicas(u, s.StatusReplicasPath)...)
	if path := s.LabelSelectorPath; path != nil && *path != "" {
		if selector, _, err := unstructured.NestedString(u.Object, splitPath(*path)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*path), selector, err.Error()))
		}
	}
	return errs
}

func (v *version) scaleSpec() *apiextensionsv1.CustomResourceSubresourceScale {
	if v.spec.Subresources == nil {
		return nil
	}
	return v.spec.Subresources.Scale
}

func validateReplicas(u *unstructured.Unstructured, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(u.Object, splitPath(path)...)
	at := field.NewPath(path)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(at, replicas, err.Error())}
	case replicas < 0:
		return field.ErrorList{field.Invalid(at, replicas, "should be a non-negative integer")}
	case replicas > math.MaxInt32:
		return field.ErrorList{field.Invalid(at, replicas, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32))}
	}
	return nil
}
