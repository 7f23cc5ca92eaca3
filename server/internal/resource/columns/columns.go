package columns

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Layout is the table of one kind: its columns, and the function that makes
// the cells of one object, one cell per column.
type Layout struct {
	Columns []metav1.TableColumnDefinition
	Cells   func(obj resource.Object, now time.Time) []any
}

// Layouts holds the table of each kind.
type Layouts map[schema.GroupVersionKind]Layout

// Add sets the table of a kind.
func (all Layouts) Add(gv schema.GroupVersion, kind string, l Layout) {
	all[gv.WithKind(kind)] = l
}

// Table makes the table of a kind whose Go type is T.
func Table[T resource.Object](cells func(obj T, now time.Time) []any, columns ...metav1.TableColumnDefinition) Layout {
	return Layout{Columns: columns, Cells: func(obj resource.Object, now time.Time) []any {
		typed, ok := obj.(T)
		if !ok {
			return MetadataCells(columns, obj, now)
		}
		return cells(typed, now)
	}}
}

// MetadataCells fills in name and age, which every object has.
func MetadataCells(columns []metav1.TableColumnDefinition, obj resource.Object, now time.Time) []any {
	cells := make([]any, len(columns))
	for i, c := range columns {
		switch {
		case obj != nil && c.Name == NameColumn.Name && c.Format == NameColumn.Format: // others may be of this format, too
			cells[i] = obj.GetName()
		case obj != nil && c.Name == AgeColumn.Name:
			cells[i] = Since(obj.GetCreationTimestamp(), now)
		default:
			cells[i] = Unknown
		}
	}
	return cells
}

// NameAndAge is the table of a kind that has no columns of its own.
func NameAndAge() Layout {
	return Table(func(obj resource.Object, now time.Time) []any {
		return []any{obj.GetName(), Since(obj.GetCreationTimestamp(), now)}
	}, NameColumn, AgeColumn)
}

// NameAndCreation is the table of the few built-in kinds whose age Kubernetes
// prints as a point in time.
func NameAndCreation() Layout {
	return Table(func(obj resource.Object, _ time.Time) []any {
		return []any{obj.GetName(), obj.GetCreationTimestamp().UTC().Format(time.RFC3339)}
	}, NameColumn, CreatedColumn)
}

// Columns that several kinds have.
var (
	metadata   = metav1.ObjectMeta{}.SwaggerDoc()
	NameColumn = metav1.TableColumnDefinition{
		Name: "Name", Type: "string", Format: "name", Description: metadata["name"],
	}
	CreatedColumn = metav1.TableColumnDefinition{
		Name: "Created At", Type: "date", Description: metadata["creationTimestamp"],
	}
	AgeColumn        = Text("Age", metadata["creationTimestamp"])
	ContainersColumn = Text("Containers", "Names of each container in the template.")
	ImagesColumn     = Text("Images", "Images referenced by each container in the template.")
)

// Text makes a column of strings.
func Text(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}
}

// Integer makes a column of numbers.
func Integer(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "integer", Description: description}
}

// Boolean makes a column of booleans.
func Boolean(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "boolean", Description: description}
}

// Wide moves a column to -o Wide.
func Wide(c metav1.TableColumnDefinition) metav1.TableColumnDefinition {
	c.Priority = 1
	return c
}
