package codec

import (
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// decodeJSONList reads a list from a stream, item by item: of the encoded form
// a few hundred kilobytes exist at a time.
func (c *Codec[T]) decodeJSONList(src *Source) (*List[T], error) {
	text := &jsonText{src: src}
	defer text.release()
	list := &List[T]{Items: []T{}}
	var kind, apiVersion string
	hasItems := false
	err := text.members(func(name string) error {
		if name == "items" {
			hasItems = true
			return c.decodeJSONItems(text, list)
		}
		value, err := text.value()
		if err != nil {
			return err
		}
		switch name {
		case "kind":
			return jsonv2.Unmarshal(value, &kind, jsonOptions)
		case "apiVersion":
			return jsonv2.Unmarshal(value, &apiVersion, jsonOptions)
		case "metadata":
			return jsonv2.Unmarshal(value, &list.ListMeta, jsonOptions)
		}
		return checkJSON(value)
	})
	if err != nil {
		return nil, err
	}
	if kind == "Status" {
		return nil, errors.New("a Status in place of a list")
	}
	// An API server writes the member for an empty list, too, as null or []: no list type of Kubernetes
	// and no list of custom resources omits it. In protobuf nothing shows an empty list.
	if !hasItems {
		return nil, fmt.Errorf("an answer of kind %.40q, without items, in place of a list", kind)
	}
	if err := c.checkListKind(schema.FromAPIVersionAndKind(apiVersion, kind)); err != nil {
		return nil, err
	}
	c.fillKinds(list.Items, kind, apiVersion)
	return list, nil
}

// checkJSON returns an error if a value that is not read is not valid.
func checkJSON(value []byte) error {
	var ignored jsontext.Value
	return jsonv2.Unmarshal(value, &ignored, jsonOptions)
}

func (c *Codec[T]) decodeJSONItems(text *jsonText, list *List[T]) error {
	if first, err := text.peek(); err != nil {
		return err
	} else if first == 'n' { // some servers write null for an empty list
		value, err := text.value()
		if err != nil {
			return err
		}
		return checkJSON(value)
	}
	items := &jsonItems[T]{codec: c, text: text, decoder: jsonDecoder{share: c.newSharer()}}
	err := text.elements(func() error {
		text.src.StartFrame()
		item, err := items.next()
		if err != nil {
			return fmt.Errorf("[%d]: %w", len(list.Items), err)
		}
		list.Items = append(list.Items, item)
		return nil
	})
	text.src.StartFrame()
	if err != nil {
		return fmt.Errorf("items: %w", err)
	}
	return nil
}

// jsonItems decodes the items of a list.
type jsonItems[T Item] struct {
	codec   *Codec[T]
	text    *jsonText
	decoder jsonDecoder
}

// next decodes the item that comes next. It first tries to decode what is in memory.
// If that fails, the item is not all there, or is one that jsonv2 has to read.
func (x *jsonItems[T]) next() (T, error) {
	var none T
	if err := x.text.isObject(); err != nil {
		return none, err
	}
	item := x.codec.newT()
	for {
		end, err := x.decoder.decode(x.text.rest(), item)
		if err == nil {
			x.text.start += end
			return item, x.codec.finish(item)
		}
		if _, ok := x.text.whole(); ok {
			break
		}
		if err := x.text.more(); err != nil {
			return none, x.text.cut(err)
		}
	}
	value, err := x.text.value()
	if err != nil {
		return none, err
	}
	if err := x.decoder.unmarshalUnusual(value, item); err != nil {
		return none, err
	}
	return item, x.codec.finish(item)
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
