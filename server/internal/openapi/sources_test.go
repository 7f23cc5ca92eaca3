package openapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// The tables of presence and of enumerations say what the types do not, and
// only comments in their sources do. They must say the same, for every type
// that is described, or a newer k8s.io/api makes them wrong unseen.
func TestTablesFollowTheSources(t *testing.T) {
	m := describedModels(t)
	packages := map[string]bool{}
	for _, typ := range m {
		packages[typ.PkgPath()] = true
	}
	wantPresence, wantEnums := map[string]mark{}, map[string]bool{}
	for path, folder := range foldersOf(t, slices.Sorted(maps.Keys(packages))) {
		readMarks(t, path, folder, m, wantPresence, wantEnums)
	}
	if len(wantPresence) < 50 || len(wantEnums) < 50 {
		t.Fatalf("only %d and %d marks were found in the sources", len(wantPresence), len(wantEnums))
	}
	for field, want := range wantPresence {
		if got, ok := presence[field]; !ok || got != want {
			t.Errorf("%s: its source says optional=%v, presence says %v (there: %v)", field, want, got, ok)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(presence)) {
		if _, ok := wantPresence[field]; !ok {
			t.Errorf("%s is in the table of presence, but nothing in the sources needs it", field)
		}
	}
	got := map[string]bool{}
	for typ := range enums() {
		got[typ.PkgPath()+"."+typ.Name()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(wantEnums)) {
		if !got[name] {
			t.Errorf("%s is an enumeration in its source, and not in ours", name)
		}
	}
}

// describedModels returns the struct types of all models, by model name.
func describedModels(t *testing.T) map[string]reflect.Type {
	t.Helper()
	found := map[string]reflect.Type{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem())
		case reflect.Struct:
			name := modelName(typ)
			if _, ok := leafSchema(typ); ok || found[name] != nil {
				return
			}
			found[name] = typ
			for i := range typ.NumField() {
				walk(typ.Field(i).Type)
			}
		}
	}
	// What is only posted is in no table of resources.
	for _, body := range []any{
		&authenticationv1.TokenRequest{}, &authenticationv1.TokenReview{}, &authenticationv1.SelfSubjectReview{},
		&authorizationv1.SubjectAccessReview{}, &authorizationv1.SelfSubjectRulesReview{},
	} {
		walk(reflect.TypeOf(body))
	}
	for _, g := range builtinGroups() {
		for _, e := range g.Endpoints {
			walk(reflect.TypeOf(e.New()))
			walk(reflect.TypeOf(e.NewList()))
		}
	}
	return found
}

// foldersOf asks the go command where the sources of packages are.
func foldersOf(t *testing.T, packages []string) map[string]string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-f", "{{.ImportPath}} {{.Dir}}"}, packages...)...).Output()
	if err != nil {
		t.Fatalf("find the sources: %v", err)
	}
	folders := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		folders[path] = folder
	}
	return folders
}

// readMarks parses the sources of a package for what its comments say of
// fields and of types of constants.
func readMarks(t *testing.T, path, folder string, models map[string]reflect.Type, fields map[string]mark, enumerations map[string]bool) {
	t.Helper()
	names := map[string]string{} // of models, by type
	for name, typ := range models {
		if typ.PkgPath() == path {
			names[typ.Name()] = name
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				typ, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if hasMark(g.Doc, "+enum") && !typ.Assign.IsValid() && isDescribed(path, typ.Name.Name, models) {
					enumerations[path+"."+typ.Name.Name] = true
				}
				if st, ok := typ.Type.(*ast.StructType); ok && names[typ.Name.Name] != "" {
					readFields(names[typ.Name.Name], st, fields)
				}
			}
		}
	}
}

// isDescribed says whether a type of constants is that of a described field.
func isDescribed(path, name string, models map[string]reflect.Type) bool {
	for _, typ := range models {
		for i := range typ.NumField() {
			f := typ.Field(i).Type
			for f.Kind() == reflect.Pointer || f.Kind() == reflect.Slice || f.Kind() == reflect.Map {
				f = f.Elem()
			}
			if f.PkgPath() == path && f.Name() == name {
				return true
			}
		}
	}
	return false
}

func readFields(model string, st *ast.StructType, fields map[string]mark) {
	for _, f := range st.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
		name, options, _ := strings.Cut(tag, ",")
		omitted := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		switch {
		case name == "" || name == "-":
		case hasMark(f.Doc, "+optional") && !omitted:
			fields[model+"."+name] = optional
		case hasMark(f.Doc, "+required") && omitted:
			fields[model+"."+name] = required
		}
	}
}

func hasMark(doc *ast.CommentGroup, mark string) bool {
	if doc == nil {
		return false
	}
	return slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		words := strings.Fields(strings.TrimPrefix(c.Text, "//"))
		return len(words) > 0 && words[0] == mark
	})
}
