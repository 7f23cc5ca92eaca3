package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Operation is one operation of a JSON patch (RFC 6902). Paths are JSON pointers,
// "/spec/replicas" for instance; see [Pointer].
type Operation struct {
	op, path, from string
	value          any
}

// Add sets a member, or inserts an element: at its index, or at the end of the
// list if the path ends in "/-". What contains it must exist.
func Add(path string, value any) Operation { return Operation{op: "add", path: path, value: value} }

// Replace sets a member or an element that exists.
func Replace(path string, value any) Operation {
	return Operation{op: "replace", path: path, value: value}
}

// Remove removes a member or an element that exists.
func Remove(path string) Operation { return Operation{op: "remove", path: path} }

// Test has the server refuse the whole patch if the value at path is another one.
func Test(path string, value any) Operation { return Operation{op: "test", path: path, value: value} }

// Move moves the value at from to path.
func Move(from, path string) Operation { return Operation{op: "move", from: from, path: path} }

// Copy copies the value at from to path.
func Copy(from, path string) Operation { return Operation{op: "copy", from: from, path: path} }

// Pointer returns the JSON pointer to a member, with what names may contain
// escaped: Pointer("metadata", "annotations", "example.com/a").
func Pointer(names ...string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, name := range names {
		b.WriteByte('/')
		b.WriteString(escape.Replace(name))
	}
	return b.String()
}

// JSON returns the patch that applies operations in their order, all or none.
func JSON(operations ...Operation) (Patch, error) {
	list := make([]map[string]any, len(operations))
	for n, o := range operations {
		if err := o.check(); err != nil {
			return Patch{}, fmt.Errorf("operation %d of the JSON patch: %w", n, err)
		}
		list[n] = o.members()
	}
	data, err := json.Marshal(list)
	if err != nil {
		return Patch{}, fmt.Errorf("JSON patch: %w", err)
	}
	return Patch{types.JSONPatchType, data}, nil
}

func (o Operation) check() error {
	switch {
	case o.op == "":
		return errors.New("it is empty: use Add, Replace, Remove, Test, Move or Copy")
	case o.path != "" && !strings.HasPrefix(o.path, "/"):
		return fmt.Errorf("the path %q is not a JSON pointer: it must begin with \"/\"", o.path)
	case o.from != "" && !strings.HasPrefix(o.from, "/"):
		return fmt.Errorf("the path %q is not a JSON pointer: it must begin with \"/\"", o.from)
	}
	return nil
}

// members are those that the RFC has for the operation: a value may be null, but
// not missing.
func (o Operation) members() map[string]any {
	members := map[string]any{"op": o.op, "path": o.path}
	switch o.op {
	case "add", "replace", "test":
		members["value"] = o.value
	case "move", "copy":
		members["from"] = o.from
	}
	return members
}
