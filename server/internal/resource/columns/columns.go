package columns

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Printer makes tables. Its only state is the clock that ages are counted
// from; the zero Printer uses time.Now. It is safe for concurrent use if Now
// is.
type Printer struct {
	Now func() time.Time
}

// For returns the columns of a kind and the function that makes the cells of
// one object, one cell per column, with the system's clock.
func For(gvk schema.GroupVersionKind) (columns []metav1.TableColumnDefinition, row func(resource.Object) []any) {
	return Printer{}.For(gvk)
}

// For returns the columns of a kind and the function that makes the cells of
// one object: one cell per column, wide ones (priority 1) included, each a
// string, an int64 or a bool. A kind that the package does not know (a custom
// resource) gets Name and Age.
//
// row never fails: an object of another Go type than the kind's gets its name,
// its age and "<unknown>". The caller owns both results.
func (p Printer) For(gvk schema.GroupVersionKind) (columns []metav1.TableColumnDefinition, row func(resource.Object) []any) {
	now := p.Now
	if now == nil {
		now = time.Now
	}
	l, ok := builtin[gvk]
	if !ok {
		l = nameAndAge()
	}
	return slices.Clone(l.columns), func(obj resource.Object) []any { return l.cells(obj, now()) }
}

// layout is the table of one kind.
type layout struct {
	columns []metav1.TableColumnDefinition
	cells   func(obj resource.Object, now time.Time) []any
}

// layouts collects the kinds of all groups.
type layouts map[schema.GroupVersionKind]layout

// builtin is never written after it is made.
var builtin = func() layouts {
	all := layouts{}
	for _, group := range []func(layouts){
		admissionregistrationGroup, apiserverinternalGroup, appsGroup, autoscalingGroup, batchGroup,
		certificatesGroup, coordinationGroup, coreGroup, discoveryGroup, eventsGroup, flowcontrolGroup,
		networkingGroup, nodeGroup, policyGroup, rbacGroup, deviceGroup, schedulingGroup, storageGroup,
		storagemigrationGroup, extensionsGroup,
	} {
		group(all)
	}
	return all
}()

func (all layouts) add(gv schema.GroupVersion, kind string, l layout) {
	all[gv.WithKind(kind)] = l
}

// table makes the layout of a kind from its columns and the function that
// fills them in for a decoded object.
func table[T resource.Object](cells func(obj T, now time.Time) []any, columns ...metav1.TableColumnDefinition) layout {
	return layout{columns: columns, cells: func(obj resource.Object, now time.Time) []any {
		typed, ok := obj.(T)
		if !ok {
			return metadataCells(columns, obj, now)
		}
		return cells(typed, now)
	}}
}

// metadataCells fills in what every object has.
func metadataCells(columns []metav1.TableColumnDefinition, obj resource.Object, now time.Time) []any {
	cells := make([]any, len(columns))
	for i, c := range columns {
		switch {
		case obj != nil && c.Format == nameColumn.Format:
			cells[i] = obj.GetName()
		case obj != nil && c.Name == ageColumn.Name:
			cells[i] = since(obj.GetCreationTimestamp(), now)
		default:
			cells[i] = unknown
		}
	}
	return cells
}

func nameAndAge() layout {
	return table(func(obj resource.Object, now time.Time) []any {
		return []any{obj.GetName(), since(obj.GetCreationTimestamp(), now)}
	}, nameColumn, ageColumn)
}

// nameAndCreation is the table of the few built-in kinds whose age Kubernetes
// prints as a point in time.
func nameAndCreation() layout {
	return table(func(obj resource.Object, _ time.Time) []any {
		return []any{obj.GetName(), obj.GetCreationTimestamp().UTC().Format(time.RFC3339)}
	}, nameColumn, metav1.TableColumnDefinition{
		Name: "Created At", Type: "date", Description: "When the object was created.",
	})
}

var (
	nameColumn = metav1.TableColumnDefinition{
		Name: "Name", Type: "string", Format: "name", Description: "The object's name, unique within its namespace.",
	}
	ageColumn        = text("Age", "The time since the object was created.")
	containersColumn = wide(text("Containers", "The names of the template's containers."))
	imagesColumn     = wide(text("Images", "The images of the template's containers."))
	selectorColumn   = wide(text("Selector", "The labels of the pods that belong to the object."))
)

func text(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}
}

func integer(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "integer", Description: description}
}

func boolean(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "boolean", Description: description}
}

// wide moves a column to -o wide.
func wide(c metav1.TableColumnDefinition) metav1.TableColumnDefinition {
	c.Priority = 1
	return c
}
