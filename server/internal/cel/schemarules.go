package cel

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

// What the compiled rules of a custom resource's schema take in memory, measured with the
// library that compiles them: it makes an environment for each part of the schema that has
// rules, with the types of all that is below.
const (
	ruleBytes        = 20_000
	environmentBytes = 60_000
	typeBytes        = 450
)

// CheckRules looks at the x-kubernetes-validations of a schema, which may be nil, before
// they are compiled: it returns an error if the compilation of one would not end, and about
// how many bytes the compiled rules will take.
func CheckRules(schema *apiextensions.JSONSchemaProps) (bytes int, err error) {
	if schema == nil {
		return 0, nil
	}
	_, bytes, err = checkRules(schema)
	return bytes, err
}

// checkRules returns the number of schemas in a part of one, too.
func checkRules(s *apiextensions.JSONSchemaProps) (schemas, bytes int, err error) {
	schemas = 1
	for part := range parts(s) {
		n, b, err := checkRules(part)
		if err != nil {
			return 0, 0, err
		}
		schemas, bytes = schemas+n, bytes+b
	}
	for _, rule := range s.XValidations {
		for _, expression := range []string{rule.Rule, rule.MessageExpression} {
			if err := checkComplexity(expression); err != nil {
				return 0, 0, err
			}
		}
		bytes += ruleBytes
	}
	if len(s.XValidations) > 0 {
		bytes += environmentBytes + schemas*typeBytes
	}
	return schemas, bytes, nil
}

// parts iterates over the schemas that a structural schema contains.
func parts(s *apiextensions.JSONSchemaProps) func(yield func(*apiextensions.JSONSchemaProps) bool) {
	return func(yield func(*apiextensions.JSONSchemaProps) bool) {
		for _, list := range [][]apiextensions.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
		if s.Not != nil && !yield(s.Not) {
			return
		}
		if s.Items != nil && s.Items.Schema != nil && !yield(s.Items.Schema) {
			return
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && !yield(s.AdditionalProperties.Schema) {
			return
		}
		for _, property := range s.Properties {
			if !yield(&property) {
				return
			}
		}
	}
}

// checkComplexity returns an error if the compilation of an expression would not end. An
// expression that does not parse gets its error from the compiler.
func checkComplexity(expression string) error {
	if expression == "" {
		return nil
	}
	env, err := baseEnv().Env(Stored)
	if err != nil {
		return internalError("CEL environment", err)
	}
	too := checkOptionals(expression)
	if too == nil {
		parsed, issues := env.Parse(expression)
		if issues.Err() != nil {
			return nil
		}
		too = checkMaps(parsed)
	}
	if too != nil {
		return fmt.Errorf("the rule %.100q: %w", expression, too)
	}
	return nil
}
