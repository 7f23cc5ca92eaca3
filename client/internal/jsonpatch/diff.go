// Package jsonpatch computes JSON patches (RFC 6902) from two documents, and
// carries the changes that were made to a typed form of a document over to the
// document itself.
package jsonpatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Operation is one operation of a JSON patch: add, replace or remove.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// MarshalJSON leaves the value out of a removal only: elsewhere it may be null.
func (o Operation) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(map[string]string{"op": o.Op, "path": o.Path})
	}
	type plain Operation
	return json.Marshal(plain(o))
}

// Decode returns the tree of a document. Numbers keep their text.
func Decode(data []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, fmt.Errorf("there is more than one JSON document")
	}
	return tree, nil
}

// Diff returns the operations that turn before into after. Both are trees of
// maps, slices and scalars, and become parts of the operations.
func Diff(before, after any) []Operation { return appendDiff(nil, "", before, after) }

func appendDiff(ops []Operation, path string, before, after any) []Operation {
	if reflect.DeepEqual(before, after) {
		return ops
	}
	switch before := before.(type) {
	case map[string]any:
		if after, ok := after.(map[string]any); ok {
			return appendObject(ops, path, before, after)
		}
	case []any:
		if after, ok := after.([]any); ok {
			return appendArray(ops, path, before, after)
		}
	}
	return append(ops, Operation{Op: "replace", Path: path, Value: after})
}

func appendObject(ops []Operation, path string, before, after map[string]any) []Operation {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		at := path + "/" + escape(name)
		if value, ok := after[name]; ok {
			ops = appendDiff(ops, at, before[name], value)
		} else {
			ops = append(ops, Operation{Op: "remove", Path: at})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			ops = append(ops, Operation{Op: "add", Path: path + "/" + escape(name), Value: after[name]})
		}
	}
	return ops
}

// appendArray leaves equal elements at both ends alone, and changes those in
// between one by one.
func appendArray(ops []Operation, path string, before, after []any) []Operation {
	first := 0
	for first < len(before) && first < len(after) && reflect.DeepEqual(before[first], after[first]) {
		first++
	}
	last := 0
	for last < len(before)-first && last < len(after)-first && reflect.DeepEqual(before[len(before)-1-last], after[len(after)-1-last]) {
		last++
	}
	at := func(n int) string { return path + "/" + strconv.Itoa(n) }
	old, changed := before[first:len(before)-last], after[first:len(after)-last]
	both := min(len(old), len(changed))
	for n := range both {
		ops = appendDiff(ops, at(first+n), old[n], changed[n])
	}
	for n := len(old) - 1; n >= both; n-- {
		ops = append(ops, Operation{Op: "remove", Path: at(first + n)})
	}
	for n := both; n < len(changed); n++ {
		ops = append(ops, Operation{Op: "add", Path: at(first + n), Value: changed[n]})
	}
	return ops
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// escape makes a name an element of a JSON pointer.
func escape(name string) string { return escaper.Replace(name) }
