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

	"github.com/levelwire/levelwire/internal/processors"
	internalcel "github.com/levelwire/levelwire/server/internal/cel"
)

// compiledSchema is a version's schema in the forms in which it is used. Each form
// is made when it is first needed: a server with many definitions starts as fast
// as one with none, and the rules of a kind that is only read are never compiled.
// All methods may be called concurrently.
type compiledSchema struct {
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

// checks are the validators of writes.
type checks struct {
	whole, status validation.SchemaValidator
	rules         *cel.Validator
}

// structural returns the schema's tree; nil if the version has none.
func (c *compiledSchema) structural() (*structuralschema.Structural, error) {
	c.reading.Do(func() {
		if err := c.read(); err != nil {
			c.err = fmt.Errorf("the schema of version %s cannot be used, correct the CustomResourceDefinition: %w", c.version, err)
		}
	})
	return c.nodes, c.err
}

func (c *compiledSchema) read() error {
	defer processors.Computing()()
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
	// Without the copy, defaults would be shared with the source of the conversion.
	nodes = nodes.DeepCopy()
	if err := defaulting.PruneDefaults(nodes); err != nil {
		return err
	}
	c.nodes = nodes
	return nil
}

// validators returns the validators of writes.
func (c *compiledSchema) validators() (checks, error) {
	c.checking.Do(func() { c.checkErr = c.compileChecks() })
	return c.checks, c.checkErr
}

func (c *compiledSchema) compileChecks() error {
	nodes, err := c.structural()
	if err != nil || c.props == nil {
		return err
	}
	defer processors.Computing()()
	if c.checks.whole, _, err = validation.NewSchemaValidator(c.props); err != nil {
		return err
	}
	if status, ok := c.props.Properties["status"]; ok {
		if c.checks.status, _, err = validation.NewSchemaValidator(&status); err != nil {
			return err
		}
	}
	if nodes != nil {
		// Another server may have stored rules whose compilation would not end.
		if _, err := internalcel.CheckRules(c.props); err != nil {
			return fmt.Errorf("the schema of version %s cannot be used, correct the CustomResourceDefinition: %w", c.version, err)
		}
		c.checks.rules = cel.NewValidator(nodes, true, celconfig.PerCallLimit)
	}
	return nil
}

// openAPI returns the schema that is published. It allows everything if the version
// has no schema or an unreadable one.
func (c *compiledSchema) openAPI() *spec.Schema {
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
