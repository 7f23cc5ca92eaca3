package builtin_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// grownBy are the lengths of a list, each twice the one before it.
var grownBy = [...]int{128, 256, 512}

// TestWorkGrowsWithLists: for each list of a valid object, what is allocated and said when the object is
// created and changed does not grow faster than the list. Twice the elements may not cost more than
// three times as much, twice in a row. It does not see comparisons that allocate nothing:
// TestLargeObjects has those that were found.
func TestWorkGrowsWithLists(t *testing.T) {
	for name, body := range validObjects(t) {
		r, obj := decoded(t, body)
		missing := 0
		if r.Kind == "CustomResourceDefinition" {
			missing = mostMissing // a schema has schemas for everything, and those of a definition take long
		}
		for _, list := range listsOf(reflect.ValueOf(obj).Elem(), nil, missing) {
			path := pathOf(reflect.TypeOf(obj).Elem(), list)
			if r.Kind != "Deployment" && strings.Contains(path, "emplate.Spec.") {
				continue // as of every template
			}
			for _, distinct := range []bool{false, true} {
				checkGrowth(t, fmt.Sprintf("%s: %s (distinct: %v)", name, path, distinct), r, obj, list, distinct)
			}
		}
	}
}

// validObjects returns the manifests here, and of kinds that have none here those of tests/differential.
func validObjects(t *testing.T) map[string][]byte {
	t.Helper()
	objects, kinds := map[string][]byte{}, map[string]bool{}
	for _, pattern := range []string{"testdata/*.yaml", "../../../../tests/differential/objects/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i, document := range bytes.Split(body, []byte("\n---\n")) {
				var head metav1.TypeMeta
				if err := yaml.Unmarshal(document, &head); err != nil {
					t.Fatal(file, err)
				}
				kind, here := head.GroupVersionKind(), strings.HasPrefix(pattern, "testdata")
				if strings.HasSuffix(file, ".golden.yaml") || !here && kinds[kind.String()] || builtin.Table().ByKind(kind) == nil {
					continue
				}
				kinds[kind.String()] = true
				objects[fmt.Sprint(filepath.Base(file), " ", kind.Kind, " ", i)] = document
			}
		}
	}
	return objects
}

func decoded(t *testing.T, body []byte) (*resource.Resource, resource.Object) {
	t.Helper()
	var head metav1.TypeMeta
	if err := yaml.Unmarshal(body, &head); err != nil {
		t.Fatal(err)
	}
	r := builtin.Table().ByKind(head.GroupVersionKind())
	obj, _, strict, err := r.DecodeBody(resource.MediaTypeYAML, body)
	if err != nil || len(strict) > 0 {
		t.Fatalf("%s: %v %v", head.Kind, strict, err)
	}
	return r, obj
}

func checkGrowth(t *testing.T, what string, r *resource.Resource, obj resource.Object, list []int, distinct bool) {
	t.Helper()
	var bytes, said [len(grownBy)]uint64
	for i, n := range grownBy {
		grown := obj.DeepCopyObject().(resource.Object)
		grow(reflect.ValueOf(grown).Elem(), list, n, distinct)
		old := grown.DeepCopyObject().(resource.Object)
		bytes[i] = allocated(func() { said[i] = uint64(write(r, grown, old)) })
	}
	for _, grew := range []struct {
		what  string
		sizes [len(grownBy)]uint64
		least uint64 // below, what does not depend on the list matters
	}{{"bytes allocated", bytes, 256 << 10}, {"errors and warnings", said, 1000}} {
		if s := grew.sizes; s[2] > grew.least && s[2] > 3*s[1] && s[1] > 3*s[0] {
			t.Errorf("%s: %v %s for %v elements", what, s, grew.what, grownBy)
		}
	}
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// write does to an object what a create, an update and an update of the status do, and returns how many errors and warnings
// there are.
func write(r *resource.Resource, obj, old resource.Object) (said int) {
	s := &r.Strategy
	if s.Default != nil {
		s.Default(obj)
	}
	if s.PrepareForCreate != nil {
		s.PrepareForCreate(obj)
	}
	refused := len(validateNew(r, obj))
	said += warned(r, obj, nil, refused)
	if s.PrepareForUpdate != nil {
		s.PrepareForUpdate(obj, old)
	}
	if s.PrepareForStatusUpdate != nil {
		s.PrepareForStatusUpdate(obj, old)
	}
	if s.ValidateStatus != nil {
		said += len(s.ValidateStatus(obj, old))
	}
	refused += len(validateChanged(r, obj, old))
	return said + warned(r, obj, old, refused)
}

// warned returns the number of errors with that of the warnings, which only an object without errors has.
func warned(r *resource.Resource, obj, old resource.Object, refused int) int {
	if refused > 0 || r.Strategy.Warnings == nil {
		return refused
	}
	return len(r.Strategy.Warnings(obj, old))
}

// mostMissing is how many members or elements that an object does not have are made up on the way to a list.
const mostMissing = 2

// listsOf returns the places of all lists in a value but those of its managedFields: the indexes of
// members, and 0 for the first element of a list.
func listsOf(v reflect.Value, at []int, missing int) (lists [][]int) {
	below := func(i int) []int { return append(at[:len(at):len(at)], i) }
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			if missing == mostMissing {
				return nil
			}
			v, missing = reflect.New(v.Type().Elem()), missing+1
		}
		return listsOf(v.Elem(), at, missing)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		lists = append(lists, at)
		switch {
		case v.Len() > 0:
			return append(lists, listsOf(v.Index(0), below(0), missing)...)
		case missing < mostMissing:
			return append(lists, listsOf(reflect.Zero(v.Type().Elem()), below(0), missing+1)...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "ManagedFields" {
				lists = append(lists, listsOf(v.Field(i), below(i), missing)...)
			}
		}
	}
	return lists
}

// pathOf names a place.
func pathOf(typ reflect.Type, at []int) string {
	var names []string
	for _, i := range at {
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() == reflect.Slice {
			names, typ = append(names, fmt.Sprint(i)), typ.Elem()
			continue
		}
		names, typ = append(names, typ.Field(i).Name), typ.Field(i).Type
	}
	return strings.Join(names, ".")
}

// grow gives the list at a place n elements like its first one.
func grow(v reflect.Value, at []int, n int, distinct bool) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	if len(at) > 0 {
		if v.Kind() == reflect.Slice {
			if v.Len() == 0 {
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			}
			grow(v.Index(at[0]), at[1:], n, distinct)
		} else {
			grow(v.Field(at[0]), at[1:], n, distinct)
		}
		return
	}
	grown := reflect.MakeSlice(v.Type(), n, n)
	for i := range n {
		if v.Len() > 0 {
			grown.Index(i).Set(v.Index(0))
		}
		if distinct {
			number(grown.Index(i), i)
		}
	}
	v.Set(grown)
}

// number makes an element differ from those of other numbers, in what elements are known by.
func number(v reflect.Value, i int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint(v.String(), i))
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(i + 1))
	case reflect.Struct:
		for _, name := range []string{"Name", "Key", "Type", "Path", "MountPath", "DevicePath", "UID", "IP", "Port", "ContainerPort", "NodePort", "TopologyKey", "Audience", "ConditionType", "Host", "Device"} {
			if f := v.FieldByName(name); f.IsValid() && f.CanSet() {
				number(f, i)
			}
		}
	}
}
