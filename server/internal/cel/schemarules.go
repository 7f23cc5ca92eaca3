package cel

import (
	"fmt"
	"maps"

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

// RuleCosts are what rules and patterns cost when they are compiled.
type RuleCosts struct {
	Bytes int // that the compiled rules will take, about
	Work  int // of the compiler, as Compiler.Work
	// Patterns are the distinct regular expressions that strings must match, with their PatternSize.
	Patterns map[string]int
}

// Add adds the costs of another schema of the same definition.
func (c *RuleCosts) Add(other RuleCosts) {
	c.Bytes, c.Work = c.Bytes+other.Bytes, c.Work+other.Work
	if c.Patterns == nil {
		c.Patterns = map[string]int{}
	}
	maps.Copy(c.Patterns, other.Patterns)
}

// PatternSize is that of all patterns.
func (c *RuleCosts) PatternSize() (sum int) {
	for _, size := range c.Patterns {
		sum += size
	}
	return sum
}

// CheckRules looks at the x-kubernetes-validations of a schema, which may be nil, and at its patterns, before
// they are compiled: it returns an error if the compilation of one would not end, and what
// all of them cost.
func CheckRules(schema *apiextensions.JSONSchemaProps) (costs RuleCosts, err error) {
	costs.Patterns = map[string]int{}
	if schema == nil {
		return costs, nil
	}
	_, err = costs.add(schema)
	return costs, err
}

// add adds the rules of a part of a schema, and returns the number of schemas in it.
func (c *RuleCosts) add(s *apiextensions.JSONSchemaProps) (schemas int, err error) {
	schemas = 1
	if _, known := c.Patterns[s.Pattern]; !known && s.Pattern != "" {
		c.Patterns[s.Pattern] = PatternSize(s.Pattern)
	}
	for part := range Parts(s) {
		n, err := c.add(part)
		if err != nil {
			return 0, err
		}
		schemas += n
	}
	for _, rule := range s.XValidations {
		for _, expression := range []string{rule.Rule, rule.MessageExpression} {
			work, err := checkComplexity(expression)
			if err != nil {
				return 0, err
			}
			c.Work += work
		}
		c.Bytes += ruleBytes
	}
	if len(s.XValidations) > 0 {
		c.Bytes += environmentBytes + schemas*typeBytes
	}
	return schemas, nil
}

// Parts iterates over the schemas that a structural schema contains.
func Parts(s *apiextensions.JSONSchemaProps) func(yield func(*apiextensions.JSONSchemaProps) bool) {
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

// checkComplexity returns an error if the compilation of an expression would not end, and
// otherwise the work of it. An expression that does not parse gets its error from the compiler.
func checkComplexity(expression string) (work int, err error) {
	if expression == "" {
		return 0, nil
	}
	env, err := baseEnv().Env(Stored)
	if err != nil {
		return 0, internalError("CEL environment", err)
	}
	work = byteWork * len(expression)
	tooComplex := checkOptionals(expression)
	if tooComplex == nil {
		parsed, issues := env.Parse(expression)
		if issues.Err() != nil {
			return work, nil
		}
		var n int
		n, tooComplex = checkParsed(env, parsed)
		work += n
		if tooComplex == nil {
			_, tooComplex = checkGrowth(parsed, nil)
		}
	}
	if tooComplex != nil {
		return 0, fmt.Errorf("the rule %.100q: %w", expression, tooComplex)
	}
	return work, nil
}
