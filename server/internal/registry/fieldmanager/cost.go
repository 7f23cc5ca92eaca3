package fieldmanager

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// structured-merge-diff keeps fields in sorted slices, and inserts each where it belongs. So the entries of
// a map and the elements of a list that are owned one by one cost the square of their number, unless they
// come in order: a second for 30,000, minutes for what fits into one request.
const (
	maxInserted = 1_000_000_000 // sum of those squares
	fewNodes    = 20_000        // of which no sum can be as large as to matter

	// maxSentFields is how many bytes of managedFields that are not those of the object are read.
	maxSentFields = 256 << 10
)

// checkCost returns an error if the fields of an object are too many for the library.
func checkCost(types managedfields.TypeConverter, res *resource.Resource, obj runtime.Object) error {
	var v value.Value
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if countNodes(u.Object, fewNodes) < fewNodes {
			return nil
		}
		v = value.NewValueInterface(u.Object)
	} else {
		made, err := value.NewValueReflect(obj)
		if err != nil {
			return err
		}
		v = made
	}
	like := &unstructured.Unstructured{}
	like.SetGroupVersionKind(res.GroupVersionKind())
	typed, err := types.ObjectToTyped(like)
	if err != nil {
		return err
	}
	c := insertionCost{schema: typed.Schema()}
	if c.add(v, typed.TypeRef()); c.sum > maxInserted {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"a map or list of this %s has too many fields that managers own one by one: about %d are possible", res.Kind, maxOwned))
	}
	return nil
}

// maxOwned is the length of one list at maxInserted.
const maxOwned = 31_000

// countNodes counts the members and elements of a decoded document, up to about a limit.
func countNodes(v any, limit int) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, member := range v {
			if n >= limit {
				break
			}
			n += countNodes(member, limit-n)
		}
	case []any:
		n = len(v)
		for _, element := range v {
			if n >= limit {
				break
			}
			n += countNodes(element, limit-n)
		}
	}
	return n
}

// insertionCost sums up the squares of how many fields the maps and lists of a value have.
type insertionCost struct {
	schema *schema.Schema
	sum    float64
}

func (c *insertionCost) add(v value.Value, ref schema.TypeRef) {
	atom, ok := c.schema.Resolve(ref)
	switch {
	case !ok || v == nil || v.IsNull() || c.sum > maxInserted:
	case v.IsMap() && atom.Map != nil && atom.Map.ElementRelationship != schema.Atomic:
		m := v.AsMap()
		c.square(m.Length())
		m.Iterate(func(name string, member value.Value) bool {
			of := atom.Map.ElementType
			if f, ok := atom.Map.FindField(name); ok {
				of = f.Type
			}
			c.add(member, of)
			return c.sum <= maxInserted
		})
	case v.IsList() && atom.List != nil && atom.List.ElementRelationship != schema.Atomic:
		list := v.AsList()
		c.square(list.Length())
		for i := 0; i < list.Length() && c.sum <= maxInserted; i++ {
			c.add(list.At(i), atom.List.ElementType)
		}
	}
}

func (c *insertionCost) square(n int) { c.sum += float64(n) * float64(n) }

// dropLargeFields takes from an object managedFields that are large and are not those that it had: the
// library would read them in whatever order they are. It is then written as if the client had sent none.
func dropLargeFields(obj resource.Object, before []metav1.ManagedFieldsEntry) {
	size, sent := 0, obj.GetManagedFields()
	for i := range sent {
		size += len(sent[i].FieldsV1.GetRawString())
	}
	if size > maxSentFields && !equalEntries(sent, before) {
		obj.SetManagedFields(nil)
	}
}
