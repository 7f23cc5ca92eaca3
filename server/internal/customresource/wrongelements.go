package customresource

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The library compares each error that it finds in an object with all that it has found: an object of 3 MB
// with 100,000 elements that are not of the schema took it ten minutes. So the elements of large objects are
// first checked one by one, until there are enough errors to refuse the object with.
const (
	largeObject     = 2_000 // members and elements
	enoughWrong     = 100
	enoughWrongText = 256 << 10
	largeEnums      = 1_000 // values of enumerations, with which no object is small
)

// elementChecks are the validators of the elements of lists, and of the entries of maps.
type elementChecks map[*apiextensions.JSONSchemaProps]validation.SchemaValidator

// wrongElements returns the errors of an object that is large, or has large enumerations, and whose elements have more than enough of them, and nil
// otherwise: then the library finds the same, and more.
func (c *compiledSchema) wrongElements(at *field.Path, value any, props *apiextensions.JSONSchemaProps) field.ErrorList {
	if props == nil || c.cost.enums < largeEnums && countValues(value, largeObject) < largeObject {
		return nil
	}
	w := wrongFinder{checks: elementChecks{}}
	if w.visit(at, value, props); !w.enough() {
		return nil
	}
	return append(w.errs, field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("more may be wrong: what comes after %d errors was not checked", len(w.errs))))
}

// newlyWrong is wrongElements for a change. Elements that were wrong before may stay: if they were that many,
// the library says which are new.
func (c *compiledSchema) newlyWrong(at *field.Path, value, old any, props *apiextensions.JSONSchemaProps) field.ErrorList {
	wrong := c.wrongElements(at, value, props)
	if wrong != nil && c.wrongElements(at, old, props) != nil {
		return nil
	}
	return wrong
}

func statusProps(props *apiextensions.JSONSchemaProps) *apiextensions.JSONSchemaProps {
	if props == nil {
		return nil
	}
	status, ok := props.Properties["status"]
	if !ok {
		return nil
	}
	return &status
}

// countValues counts the values in a value, up to about a limit.
func countValues(value any, limit int) (n int) {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if n += 1 + countValues(member, limit-n); n >= limit {
				break
			}
		}
	case []any:
		for _, element := range v {
			if n += 1 + countValues(element, limit-n); n >= limit {
				break
			}
		}
	}
	return n
}

// wrongFinder collects errors of elements, until there are enough.
type wrongFinder struct {
	checks elementChecks
	errs   field.ErrorList
	text   int // the length of what they say
}

func (w *wrongFinder) enough() bool { return len(w.errs) > enoughWrong || w.text > enoughWrongText }

// visit checks the elements in a value, those of the inner lists and maps first.
func (w *wrongFinder) visit(at *field.Path, value any, props *apiextensions.JSONSchemaProps) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if known, ok := props.Properties[name]; ok {
				w.visit(at.Child(name), member, &known)
			} else if more := props.AdditionalProperties; more != nil && more.Schema != nil {
				w.element(at.Key(name), member, more.Schema)
			}
			if w.enough() {
				return
			}
		}
	case []any:
		if props.Items == nil || props.Items.Schema == nil {
			return
		}
		for i, element := range v {
			if w.element(at.Index(i), element, props.Items.Schema); w.enough() {
				return
			}
		}
	}
}

func (w *wrongFinder) element(at *field.Path, value any, props *apiextensions.JSONSchemaProps) {
	if w.visit(at, value, props); w.enough() {
		return
	}
	check, known := w.checks[props]
	if !known {
		check, _, _ = validation.NewSchemaValidator(props) // the whole schema has been compiled: there is no error
		w.checks[props] = check
	}
	if check != nil {
		errs := validation.ValidateCustomResource(at, value, check)
		for _, err := range errs {
			w.text += len(err.Detail)
		}
		w.errs = append(w.errs, errs...)
	}
}
