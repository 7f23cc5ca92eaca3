package customresource

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	source   []byte // shared with the cache
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
	crd := &crdMeta{revision: object.Revision, source: object.JSON}
	if err := json.Unmarshal(object.JSON, crd); err != nil {
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

// schemaOf reads the schema of a version out of the definition's bytes; nil if
// it has none.
func schemaOf(source []byte, version string) (*apiextensionsv1.JSONSchemaProps, error) {
	var doc struct {
		Spec struct {
			Versions []struct {
				Name   string          `json:"name"`
				Schema json.RawMessage `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(source, &doc); err != nil {
		return nil, err
	}
	for _, v := range doc.Spec.Versions {
		if v.Name != version || len(v.Schema) == 0 {
			continue
		}
		var validation apiextensionsv1.CustomResourceValidation
		if err := json.Unmarshal(v.Schema, &validation); err != nil {
			return nil, err
		}
		return validation.OpenAPIV3Schema, nil
	}
	return nil, nil
}
