package codec

import (
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// decodeJSONList reads a list from a stream, item by item: of the encoded form
// a few kilobytes exist at a time.
func (c *Codec[T]) decodeJSONList(src *Source) (*List[T], error) {
	dec := newJSONReader(src, c.newSharer())
	list := &List[T]{Items: []T{}}
	var kind, apiVersion string
	err := eachMember(dec.Decoder, func(name string) error {
		switch name {
		case "kind":
			return jsonv2.UnmarshalDecode(dec.Decoder, &kind)
		case "apiVersion":
			return jsonv2.UnmarshalDecode(dec.Decoder, &apiVersion)
		case "metadata":
			return jsonv2.UnmarshalDecode(dec.Decoder, &list.ListMeta)
		case "items":
			return c.decodeJSONItems(dec, src, list)
		default:
			return dec.SkipValue()
		}
	})
	if err != nil {
		return nil, err
	}
	if kind == "Status" {
		return nil, errors.New("a Status in place of a list")
	}
	c.fillKinds(list.Items, kind, apiVersion)
	return list, nil
}

func (c *Codec[T]) decodeJSONItems(dec *jsonReader, src *Source, list *List[T]) error {
	switch dec.PeekKind() {
	case 'n': // some servers write null for an empty list
		return dec.SkipValue()
	case '[':
	default:
		kind := dec.PeekKind()
		if err := dec.SkipValue(); err != nil {
			return err
		}
		return fmt.Errorf("items: want an array, got %v", kind)
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		src.StartFrame()
		item, err := c.decodeItem(dec)
		if err != nil {
			return fmt.Errorf("items[%d]: %w", len(list.Items), err)
		}
		list.Items = append(list.Items, item)
	}
	src.StartFrame()
	_, err := dec.ReadToken()
	return err
}

// fillKinds gives unstructured items the kind that lists of built-in types
// carry only once.
func (c *Codec[T]) fillKinds(items []T, listKind, apiVersion string) {
	const suffix = "List"
	if c.form != FormUnstructured || len(listKind) <= len(suffix) || listKind[len(listKind)-len(suffix):] != suffix {
		return
	}
	kind := listKind[:len(listKind)-len(suffix)]
	for _, item := range items {
		object := any(item).(*unstructured.Unstructured).Object
		if k, _ := object["kind"].(string); k == "" {
			object["kind"], object["apiVersion"] = kind, apiVersion
		}
	}
}
