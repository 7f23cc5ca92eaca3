package customresource

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"

	internalcel "github.com/levelwire/levelwire/server/internal/cel"
)

const (
	// maxChecks bounds how often the library compares a value of an object with something in the schema: a part of
	// it, an alternative, a value of an enumeration, or 16 steps of a pattern for a byte. An object of 3 MB and a schema
	// of as much could make it compare for days, and it cannot be interrupted. 20,000,000 take it some seconds.
	maxChecks    = 20_000_000
	patternSteps = 16
)

// validationCost bounds what the validation of an object may cost.
type validationCost struct {
	parts    int // of the schema, with the values of enumerations: all that a value could be compared with
	enums    int // the values of all enumerations, each of which is in the error about one of them
	steps    int // of all patterns
	patterns map[string]int
}

func newValidationCost(props *apiextensions.JSONSchemaProps, costs internalcel.RuleCosts) validationCost {
	c := validationCost{steps: costs.PatternSize(), patterns: costs.Patterns}
	c.addParts(props)
	return c
}

func (c *validationCost) addParts(props *apiextensions.JSONSchemaProps) {
	c.parts += 1 + len(props.Enum) + len(props.Required)
	c.enums += len(props.Enum)
	for part := range internalcel.Parts(props) {
		c.addParts(part)
	}
}

// check returns an error if an object is too expensive to be validated.
func (c *validationCost) check(at *field.Path, value any, props *apiextensions.JSONSchemaProps) field.ErrorList {
	var size extent
	size.add(value, 1)
	if props == nil || size.values*c.parts+size.bytes*c.steps/patternSteps <= maxChecks {
		return nil // whatever is compared with what
	}
	count := checkCount{patterns: c.patterns}
	if count.add(value, props); count.checks <= maxChecks {
		return nil
	}
	return field.ErrorList{field.Forbidden(at, fmt.Sprintf(
		"the object has too many values for the enumerations, alternatives and patterns of its schema: more than %d would have to be compared", maxChecks))}
}

// checkCount counts the comparisons for a value, until there are too many.
type checkCount struct {
	patterns map[string]int
	checks   int
}

func (c *checkCount) add(value any, props *apiextensions.JSONSchemaProps) {
	c.checks += 1 + len(props.Enum) + len(props.Required)
	for _, list := range [][]apiextensions.JSONSchemaProps{props.AllOf, props.AnyOf, props.OneOf} {
		for i := range list {
			if c.checks > maxChecks {
				return
			}
			c.add(value, &list[i])
		}
	}
	if props.Not != nil {
		c.add(value, props.Not)
	}
	switch v := value.(type) {
	case string:
		c.checks += len(v) * c.patterns[props.Pattern] / patternSteps
	case map[string]any:
		c.addMembers(v, props)
	case []any:
		if props.Items == nil || props.Items.Schema == nil {
			return
		}
		for _, element := range v {
			if c.checks > maxChecks {
				return
			}
			c.add(element, props.Items.Schema)
		}
	}
}

func (c *checkCount) addMembers(members map[string]any, props *apiextensions.JSONSchemaProps) {
	for name, member := range members {
		if c.checks > maxChecks {
			return
		}
		if known, ok := props.Properties[name]; ok {
			c.add(member, &known)
		} else if more := props.AdditionalProperties; more != nil && more.Schema != nil {
			c.add(member, more.Schema)
		}
	}
}
