package relay

import (
	"bytes"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/internal/jsonscan"
)

// object is an object of the upstream as it was received: of its JSON only the
// identifying metadata is read. It is what the reflector moves from the stream into the
// cache.
type object struct {
	metav1.TypeMeta
	metav1.ObjectMeta // name, namespace, resourceVersion, and the annotation of a bookmark
	json              []byte
}

// DeepCopyObject implements runtime.Object.
func (o *object) DeepCopyObject() runtime.Object {
	c := *o
	o.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// UnmarshalJSON implements json.Unmarshaler. It copies data, which is the decoder's.
func (o *object) UnmarshalJSON(data []byte) error {
	o.json = bytes.Clone(data)
	return o.read()
}

// read reads the metadata from the JSON.
func (o *object) read() error {
	s := jsonscan.Scanner{Data: o.json}
	if err := s.Expect('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		key, ok, err := s.Member(first)
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("an object without metadata")
		}
		if string(key.Raw()) == "metadata" {
			return o.readMetadata(&s)
		}
		if _, err := s.Skip(); err != nil {
			return err
		}
	}
}

// readMetadata reads the members of the metadata that are needed.
func (o *object) readMetadata(s *jsonscan.Scanner) error {
	if err := s.Expect('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		key, ok, err := s.Member(first)
		if err != nil || !ok {
			return err
		}
		var to *string
		switch string(key.Raw()) {
		case "name":
			to = &o.Name
		case "namespace":
			to = &o.Namespace
		case "resourceVersion":
			to = &o.ResourceVersion
		}
		if to != nil && s.Peek() == '"' {
			value, err := s.String()
			if err != nil {
				return err
			}
			if *to, err = value.Value(); err != nil {
				return err
			}
			continue
		}
		value, err := s.Skip()
		if err != nil {
			return err
		}
		if string(key.Raw()) == "annotations" && bytes.Contains(value, []byte(`"`+metav1.InitialEventsAnnotationKey+`":"true"`)) {
			o.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		}
	}
}
