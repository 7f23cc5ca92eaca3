package state

import (
	"encoding/json"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// Identity returns the object with nothing but its kind, name, namespace and UID, and a
// revision.
func (o *Object) Identity(res *resource.Resource, revision storage.Revision) (*Object, error) {
	type metadata struct {
		ResourceVersion string `json:"resourceVersion"` // first: see NewObject
		Name            string `json:"name"`
		Namespace       string `json:"namespace,omitempty"`
		UID             string `json:"uid,omitempty"`
	}
	var reduced struct {
		Kind       string   `json:"kind,omitempty"`
		APIVersion string   `json:"apiVersion,omitempty"`
		Metadata   metadata `json:"metadata"`
	}
	at := o.AtRevision(revision)
	if err := json.Unmarshal(at.JSON(), &reduced); err != nil {
		return nil, err
	}
	text, err := json.Marshal(&reduced)
	if err != nil {
		return nil, err
	}
	attributes, err := res.Attributes(text)
	if err != nil {
		return nil, err
	}
	return NewObject(o.Key, revision, attributes, text)
}
