package customresource

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

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
	"github.com/levelwire/levelwire/server/internal/patterntable"
)

// compiledSchema is a version's schema in the forms in which it is used. Each form
// is made when it is first needed: a server with many definitions starts as fast
// as one with none, and the rules of a kind that is only read are never compiled.
// All methods may be called concurrently.
type compiledSchema struct {
	schemas  *schemaTexts // of the definition
	version  string
	preserve bool // spec.preserveUnknownFields, of definitions from before v1

	reading sync.Once
	tree
	err    error
	isRead atomic.Bool // whether tree and err may be read without reading

	checking sync.Once
	checks   checks
	cost     validationCost
	checkErr error

	typing  sync.Once
	types   managedfields.TypeConverter
	typeErr error
}

// tree is a schema that has been decoded.
type tree struct {
	props *apiextensions.JSONSchemaProps
	nodes *structuralschema.Structural // nil if nothing is pruned or defaulted
}

// checks are the validators of writes.
type checks struct {
	whole, status validation.SchemaValidator
	rules         *cel.Validator
	patterns      *patterntable.Set // of the schema
}

// errPanicked is what is known of a schema while it is read for the first time. Without it, a schema on which a
// library panics would count as none from the second request on, and nothing would be checked.
var errPanicked = errors.New("the schema cannot be read, correct the CustomResourceDefinition")

// structural returns the schema's tree; nil if the version has none.
func (c *compiledSchema) structural() (*structuralschema.Structural, error) {
	c.reading.Do(func() {
		c.err = errPanicked // stays if a library does
		if c.tree, c.err = c.read(); c.err != nil {
			c.err = fmt.Errorf("the schema of version %s cannot be used, correct the CustomResourceDefinition: %w", c.version, c.err)
		}
		c.isRead.Store(true)
	})
	return c.nodes, c.err
}

// read decodes the schema.
func (c *compiledSchema) read() (tree, error) {
	defer processors.Computing()()
	props, err := c.schemas.read(c.version)
	if err != nil || props == nil {
		return tree{}, err
	}
	t := tree{props: &apiextensions.JSONSchemaProps{}}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, t.props, nil); err != nil {
		return t, err
	}
	if c.preserve {
		return t, nil
	}
	nodes, err := structuralschema.NewStructural(t.props)
	if err != nil {
		return t, err
	}
	// Without the copy, defaults would be shared with the source of the conversion.
	nodes = nodes.DeepCopy()
	if err := defaulting.PruneDefaults(nodes); err != nil {
		return t, err
	}
	t.nodes = nodes
	return t, nil
}

// validators returns the validators of writes, with their patterns in memory.
func (c *compiledSchema) validators() (checks, error) {
	c.checking.Do(func() {
		c.checkErr = errPanicked
		c.checkErr = c.compileChecks()
	})
	if c.checkErr == nil {
		c.checks.patterns.Load()
	}
	return c.checks, c.checkErr
}

func (c *compiledSchema) compileChecks() error {
	nodes, err := c.structural()
	if err != nil || c.props == nil {
		return err
	}
	defer processors.Computing()()
	// Another server may have stored rules whose compilation would not end.
	costs, err := internalcel.CheckRules(c.props)
	if nodes == nil {
		err = nil // they are not compiled
	}
	if err != nil {
		return fmt.Errorf("the schema of version %s cannot be used, correct the CustomResourceDefinition: %w", c.version, err)
	}
	c.cost = newValidationCost(c.props, costs)
	c.checks.patterns = patterntable.New(costs.Patterns)
	runtime.AddCleanup(c, (*patterntable.Set).Forget, c.checks.patterns) // nothing else tells when the last request has ended
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

// openAPI returns the schema that is published, made anew with each call. It allows everything
// if the version has no schema or an unreadable one. What has to be decoded for it is not kept:
// of most definitions the documents are all that is ever made.
func (c *compiledSchema) openAPI() *spec.Schema {
	var nodes *structuralschema.Structural
	var err error
	if c.isRead.Load() {
		nodes, err = c.nodes, c.err
	} else {
		var t tree
		t, err = c.read()
		nodes = t.nodes
	}
	if err != nil || nodes == nil {
		open := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
		open.AddExtension("x-kubernetes-preserve-unknown-fields", true)
		return open
	}
	return nodes.ToKubeOpenAPI()
}

// json returns the schema as the definition has it; nil if nothing is to be published of it.
func (c *compiledSchema) json() []byte {
	if c.preserve {
		return nil
	}
	text, err := c.schemas.of(c.version)
	if err != nil {
		return nil // openAPI reports it
	}
	return text
}
