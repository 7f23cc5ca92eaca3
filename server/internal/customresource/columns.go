package customresource

import (
	"bytes"
	"encoding/json"
	"reflect"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// age is the column of a definition without columns.
var age = apiextensionsv1.CustomResourceColumnDefinition{
	Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
	Description: columns.CreatedColumn.Description,
}

// columnsOf returns the table columns of a version: the name, and those of the
// definition. Paths are parsed when the first row is made.
func columnsOf(added []apiextensionsv1.CustomResourceColumnDefinition) ([]metav1.TableColumnDefinition, func(resource.Object) []any) {
	if len(added) == 0 {
		added = []apiextensionsv1.CustomResourceColumnDefinition{age}
	}
	definitions := []metav1.TableColumnDefinition{columns.NameColumn}
	for _, c := range added {
		description := c.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		definitions = append(definitions, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority,
		})
	}
	paths := sync.OnceValue(func() []columnPath { return parsePaths(added) })
	return definitions, func(obj resource.Object) []any {
		cells := []any{obj.GetName()}
		row := newRow(obj.(*unstructured.Unstructured).Object)
		for i, path := range paths() {
			cells = append(cells, row.cell(added[i].Type, path))
		}
		return cells
	}
}

func parsePaths(added []apiextensionsv1.CustomResourceColumnDefinition) []columnPath {
	paths := make([]columnPath, len(added))
	for i, c := range added {
		paths[i] = parsePath(c.Name, c.JSONPath)
	}
	return paths
}

// cell returns the value of an object in a column; nil if the object has no value
// of the column's type there, or if the row has become too expensive.
func (r *row) cell(kind string, path columnPath) any {
	if !r.allows(path) {
		return nil
	}
	results, err := path.FindResults(r.object)
	if err != nil || len(results) == 0 || len(results[0]) == 0 || !results[0][0].IsValid() {
		return nil
	}
	value := results[0][0].Interface()
	if kind == "string" {
		var text bytes.Buffer
		if path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}) != nil {
			return nil
		}
		r.bytes -= text.Len()
		return text.String()
	}
	return typedCell(kind, value)
}

// typedCell converts a value to the column's type.
func typedCell(kind string, value any) any {
	switch kind {
	case "integer":
		switch n := value.(type) {
		case int64:
			return n
		case float64:
			return int64(n)
		case json.Number:
			if i, err := n.Int64(); err == nil {
				return i
			}
		}
	case "number":
		switch n := value.(type) {
		case int64:
			return float64(n)
		case float64:
			return n
		}
	case "boolean":
		if b, ok := value.(bool); ok {
			return b
		}
	case "date":
		if text, ok := value.(string); ok {
			return since(text, time.Now())
		}
	}
	return nil
}

// since returns how long ago a time was, as kubectl shows ages.
func since(text string, now time.Time) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "<invalid>"
	}
	return duration.HumanDuration(now.Sub(at))
}
