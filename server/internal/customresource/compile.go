package customresource

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/managedfields"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// compiled is a version's schema in the forms it is used in. Each is made when
// it is first needed: a server with many definitions starts as fast as one with
// none, and a kind that is only read never has its rules compiled. All methods
// may be called concurrently.
type compiled struct {
	source   []byte // the definition
	version  string
	preserve bool // spec.preserveUnknownFields, of definitions from before v1

	reading sync.Once
	props   *apiextensions.JSONSchemaProps
	nodes   *structuralschema.Structural // nil if nothing is pruned or defaulted
	err     error

	checking sync.Once
	checks   checks
	checkErr error

	publishing sync.Once
	published  *spec.Schema

	typing  sync.Once
	types   managedfields.TypeConverter
	typeErr error
}

// checks are what writes are validated with.
type checks struct {
	whole, status validation.SchemaValidator
	rules         *cel.Validator
}

// structural returns the schema's tree; nil if the version has none.
func (c *compiled) structural() (*structuralschema.Structural, error) {
	c.reading.Do(func() {
		if err := c.read(); err != nil {
			c.err = fmt.Errorf("the schema of version %s cannot be used, correct the CustomResourceDefinition: %w", c.version, err)
		}
	})
	return c.nodes, c.err
}

func (c *compiled) read() error {
	props, err := schemaOf(c.source, c.version)
	if err != nil || props == nil {
		return err
	}
	c.props = &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, c.props, nil); err != nil {
		return err
	}
	if c.preserve {
		return nil
	}
	nodes, err := structuralschema.NewStructural(c.props)
	if err != nil {
		return err
	}
	// Defaults are shared with the source of the conversion otherwise.
	nodes = nodes.DeepCopy()
	if err := defaulting.PruneDefaults(nodes); err != nil {
		return err
	}
	c.nodes = nodes
	return nil
}

// validators returns what writes are checked with.
func (c *compiled) validators() (checks, error) {
	c.checking.Do(func() { c.checkErr = c.compileChecks() })
	return c.checks, c.checkErr
}

func (c *compiled) compileChecks() error {
	nodes, err := c.structural()
	if err != nil || c.props == nil {
		return err
	}
	if c.checks.whole, _, err = validation.NewSchemaValidator(c.props); err != nil {
		return err
	}
	if status, ok := c.props.Properties["status"]; ok {
		if c.checks.status, _, err = validation.NewSchemaValidator(&status); err != nil {
			return err
		}
	}
	if nodes != nil {
		c.checks.rules = cel.NewValidator(nodes, true, celconfig.PerCallLimit)
	}
	return nil
}

// openAPI returns the schema for publication; an open one if there is none or
// it cannot be read.
func (c *compiled) openAPI() *spec.Schema {
	c.publishing.Do(func() {
		nodes, err := c.structural()
		if err != nil || nodes == nil {
			c.published = &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
			c.published.AddExtension("x-kubernetes-preserve-unknown-fields", true)
			return
		}
		c.published = nodes.ToKubeOpenAPI()
	})
	return c.published
}
