package apiextensions

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/cel"
)

// maxRuleBytes is what the compiled x-kubernetes-validations of a definition may take:
// some thousand rules, or some hundred at the top of large schemas.
const maxRuleBytes = 100 << 20

// A compiled pattern takes about 40 bytes for each step of it, and package patterntable keeps those of some definitions.
const (
	maxPatterns    = 3_000
	maxPatternSize = 1_000_000
)

// checkRules returns what keeps the rules and patterns of a definition from being compiled. The library
// that validates definitions compiles whatever it is given, which may take hours. A
// definition that had large rules before may keep as many.
func checkRules(crd, old *apiextensions.CustomResourceDefinition) field.ErrorList {
	at := field.NewPath("spec", "versions")
	costs, errs := ruleCosts(crd, at)
	if len(errs) > 0 || fits(&costs, nil) {
		return errs
	}
	if old != nil {
		if before, errs := ruleCosts(old, at); len(errs) == 0 && fits(&costs, &before) {
			return nil
		}
	}
	if costs.Bytes > maxRuleBytes {
		errs = append(errs, field.Forbidden(at, fmt.Sprintf(
			"the rules in x-kubernetes-validations would take about %d MiB of memory when they are compiled, and may take %d: remove some, or move them to smaller parts of the schema", costs.Bytes>>20, maxRuleBytes>>20)))
	}
	if costs.Work > cel.MaxWork {
		errs = append(errs, field.Forbidden(at, fmt.Sprintf(
			"the rules in x-kubernetes-validations would take the compiler about %d steps, and may take %d: remove some, or make them shorter", costs.Work, cel.MaxWork)))
	}
	if n := len(costs.Patterns); n > maxPatterns {
		errs = append(errs, field.Forbidden(at, fmt.Sprintf("the schemas have %d different patterns, and may have %d", n, maxPatterns)))
	}
	if n := costs.PatternSize(); n > maxPatternSize {
		errs = append(errs, field.Forbidden(at, fmt.Sprintf(
			"the patterns of strings would have about %d steps when they are compiled, and may have %d: repeat less in them", n, maxPatternSize)))
	}
	return errs
}

// fits reports whether costs are not above what is allowed, or what they were before.
func fits(costs, before *cel.RuleCosts) bool {
	most := cel.RuleCosts{Bytes: maxRuleBytes, Work: cel.MaxWork}
	patterns, size := maxPatterns, maxPatternSize
	if before != nil {
		most.Bytes, most.Work = max(most.Bytes, before.Bytes), max(most.Work, before.Work)
		patterns, size = max(patterns, len(before.Patterns)), max(size, before.PatternSize())
	}
	return costs.Bytes <= most.Bytes && costs.Work <= most.Work && len(costs.Patterns) <= patterns && costs.PatternSize() <= size
}

func ruleCosts(crd *apiextensions.CustomResourceDefinition, at *field.Path) (sum cel.RuleCosts, errs field.ErrorList) {
	add := func(v *apiextensions.CustomResourceValidation, at *field.Path) {
		if v == nil {
			return
		}
		costs, err := cel.CheckRules(v.OpenAPIV3Schema)
		if err != nil {
			errs = append(errs, field.Forbidden(at, err.Error()))
		}
		sum.Add(costs)
	}
	add(crd.Spec.Validation, field.NewPath("spec", "validation"))
	for i := range crd.Spec.Versions {
		add(crd.Spec.Versions[i].Schema, at.Index(i).Child("schema", "openAPIV3Schema"))
	}
	return sum, errs
}

// unchanged reports whether an update leaves a definition as it was but for metadata and
// status. Rules that cannot be compiled do not keep it from being deleted.
func unchanged(crd, old *apiextensionsv1.CustomResourceDefinition) bool {
	return equality.Semantic.DeepEqual(crd.Spec, old.Spec)
}
