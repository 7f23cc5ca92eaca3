package customresource

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/jsonscan"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// crdMeta is a CustomResourceDefinition without its schemas, which are most of
// its bytes. They stay in the JSON that the cache of definitions holds anyway, and
// are read when they are needed: most of them not before the first write.
type crdMeta struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              crdSpec                                        `json:"spec"`
	Status            apiextensionsv1.CustomResourceDefinitionStatus `json:"status"`

	revision storage.Revision
	schemas  *schemaTexts // of the JSON that the cache has
}

type crdSpec struct {
	Group                 string                                        `json:"group"`
	Names                 apiextensionsv1.CustomResourceDefinitionNames `json:"names"`
	Scope                 apiextensionsv1.ResourceScope                 `json:"scope"`
	Versions              []crdVersion                                  `json:"versions"`
	Conversion            *apiextensionsv1.CustomResourceConversion     `json:"conversion"`
	PreserveUnknownFields bool                                          `json:"preserveUnknownFields"`
}

// crdVersion is a version with the digest of its schema in place of the schema.
type crdVersion struct {
	Name                     string                                           `json:"name"`
	Served                   bool                                             `json:"served"`
	Storage                  bool                                             `json:"storage"`
	Deprecated               bool                                             `json:"deprecated"`
	DeprecationWarning       *string                                          `json:"deprecationWarning"`
	Schema                   digest                                           `json:"schema"`
	Subresources             *apiextensionsv1.CustomResourceSubresources      `json:"subresources"`
	AdditionalPrinterColumns []apiextensionsv1.CustomResourceColumnDefinition `json:"additionalPrinterColumns"`
	SelectableFields         []apiextensionsv1.SelectableField                `json:"selectableFields"`
}

// digest stands for a part of a document: parts with equal digests are equal.
type digest [sha256.Size]byte

// UnmarshalJSON implements json.Unmarshaler.
func (d *digest) UnmarshalJSON(data []byte) error {
	*d = sha256.Sum256(data)
	return nil
}

// readCRDMeta decodes a cached definition.
func readCRDMeta(object *watchcache.Object) (*crdMeta, error) {
	text := object.JSON()
	crd := &crdMeta{revision: object.Revision, schemas: &schemaTexts{source: text}}
	if err := json.Unmarshal(text, crd); err != nil {
		return nil, fmt.Errorf("the stored CustomResourceDefinition %q cannot be read: %w", object.Key, err)
	}
	return crd, nil
}

// storageVersion returns the version that objects are written in.
func (crd *crdMeta) storageVersion() string {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			return crd.Spec.Versions[i].Name
		}
	}
	return ""
}

// schemaTexts finds the schemas in a definition's bytes. All are found at once, when the first
// one is needed: a definition may have thousands of versions.
type schemaTexts struct {
	source []byte // the definition

	finding   sync.Once
	byVersion map[string]schemaText // by the version's name in JSON
	err       error
}

// schemaText is the schema of a version.
type schemaText struct {
	json []byte // a part of the definition; nil: there is none
	err  error
}

// of returns the schema of a version; nil if it has none.
func (t *schemaTexts) of(version string) ([]byte, error) {
	t.finding.Do(func() { t.byVersion, t.err = findSchemas(t.source) })
	if t.err != nil {
		return nil, t.err
	}
	text := t.byVersion[`"`+version+`"`]
	return text.json, text.err
}

// read decodes the schema of a version; nil if it has none.
func (t *schemaTexts) read(version string) (*apiextensionsv1.JSONSchemaProps, error) {
	text, err := t.of(version)
	if err != nil || text == nil {
		return nil, err
	}
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal(text, props); err != nil {
		return nil, err
	}
	return props, nil
}

// findSchemas returns the schemas of a definition.
func findSchemas(source []byte) (map[string]schemaText, error) {
	spec, err := member(source, "spec")
	if err != nil {
		return nil, err
	}
	versions, err := member(spec, "versions")
	if err != nil || versions == nil {
		return nil, err
	}
	found := map[string]schemaText{}
	s := jsonscan.Scanner{Data: versions}
	if err := s.Expect('['); err != nil {
		return nil, err
	}
	for first := true; !s.Take(']'); first = false {
		if !first {
			if err := s.Expect(','); err != nil {
				return nil, err
			}
		}
		one, err := s.Skip()
		if err != nil {
			return nil, err
		}
		name, err := member(one, "name")
		if err != nil {
			return nil, err
		}
		if _, known := found[string(name)]; !known {
			found[string(name)] = schemaIn(one)
		}
	}
	return found, nil
}

// schemaIn returns the schema in a version.
func schemaIn(version []byte) schemaText {
	schema, err := member(version, "schema")
	if err == nil {
		schema, err = member(schema, "openAPIV3Schema")
	}
	return schemaText{schema, err}
}

// member returns a member of an object; nil if it is null, or there is none.
func member(object []byte, name string) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	s := jsonscan.Scanner{Data: object}
	if err := s.Expect('{'); err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		key, ok, err := s.Member(first)
		if err != nil || !ok {
			return nil, err
		}
		value, err := s.Skip()
		if err != nil {
			return nil, err
		}
		if string(key.Raw()) == name {
			if string(value) == "null" {
				return nil, nil
			}
			return value, nil
		}
	}
}
