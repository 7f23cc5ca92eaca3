package fieldmanager

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// pathElement returns a step as structured-merge-diff has it.
func (s *step) pathElement() fieldpath.PathElement {
	switch {
	case s.list == nil:
		return fieldpath.PathElement{FieldName: s.name}
	case s.made.Key == nil && s.made.Value == nil:
		s.made = elementOf(s.list, s.element)
	}
	return s.made
}

// elementOf returns what identifies an element of a list.
func elementOf(list *typeInfo, element reflect.Value) fieldpath.PathElement {
	if list.kind == setKind {
		v := value.NewValueInterface(plain(element))
		return fieldpath.PathElement{Value: &v}
	}
	keys := make(value.FieldList, 0, len(list.keys))
	for _, k := range list.keys {
		if v := k.of(element); v != nil {
			keys = append(keys, value.Field{Name: k.field.name, Value: value.NewValueInterface(v)})
		}
	}
	return fieldpath.PathElement{Key: &keys}
}

// of returns the key of an element, or nil if it has none.
func (k *key) of(element reflect.Value) any {
	v := content(k.field.of(element))
	if !v.IsValid() {
		return k.fallback
	}
	return plain(v)
}

// plain returns a scalar that can be a key as what JSON decodes to.
func plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	}
	return v.Interface()
}

// appendStep appends a step as a member name of FieldsV1, quoted.
func appendStep(dst []byte, s *step) []byte {
	if s.quoted != "" {
		return append(dst, s.quoted...)
	}
	var scratch [96]byte
	inner := scratch[:0]
	switch {
	case s.list == nil:
		inner = append(append(inner, "f:"...), *s.name...)
	case s.list.kind == setKind:
		inner = appendPlain(append(inner, "v:"...), plain(s.element))
	default:
		inner = append(inner, "k:{"...)
		first := true
		for _, k := range s.list.keys {
			v := k.of(s.element)
			if v == nil {
				continue
			}
			if !first {
				inner = append(inner, ',')
			}
			first = false
			inner = append(appendPlain(inner, k.field.name), ':')
			inner = appendPlain(inner, v)
		}
		inner = append(inner, '}')
	}
	dst, _ = jsontext.AppendQuote(dst, inner)
	return dst
}

// appendPlain appends a scalar as JSON.
func appendPlain(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		dst = appendHTMLSafe(dst, v)
	case int64:
		dst = strconv.AppendInt(dst, v, 10)
	case int:
		dst = strconv.AppendInt(dst, int64(v), 10)
	case bool:
		dst = strconv.AppendBool(dst, v)
	}
	return dst
}

// appendHTMLSafe quotes a string as encoding/json does, which is what the
// library does in keys and values.
func appendHTMLSafe(dst []byte, s string) []byte {
	if !strings.ContainsAny(s, "<>&\u2028\u2029") {
		dst, _ = jsontext.AppendQuote(dst, s)
		return dst
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		return append(dst, `""`...)
	}
	return append(dst, quoted...)
}
