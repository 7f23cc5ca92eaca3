package fieldmanager

import (
	_ "embed"
	"reflect"
	"strings"
	"sync"
)

// relationsText says what a Go type does not: which lists of which types have
// keys or are sets, and which structs and maps change only as a whole. One line
// each: group/versions, type or type.field, relation. Everything else is the
// default: lists are whole, structs and maps are not. It is what the API's
// +listType, +listMapKey, +mapType and +structType marks come to, and a test
// holds it against the schema that client-go has for each kind.
//
//go:embed relations.txt
var relationsText string

// relation is how the elements of a list or map belong together.
type relation struct {
	kind relationKind
	keys []string // byKey: the names of the members that make the key
	// fallback, of a member of a key, is what it counts as where it is absent.
	fallback string
}

type relationKind uint8

const (
	relationDefault relationKind = iota
	whole                        // atomic: a leaf, whatever it holds
	byKey                        // a list whose elements have keys
	asSet                        // a list of scalars that are their own keys
	apart                        // granular here, though the type is whole
	defaulted                    // a member of a key that may be absent
)

// relations is keyed by "group/version Type" and "group/version Type.field".
var relations = sync.OnceValue(func() map[string]relation {
	table := make(map[string]relation, 256)
	for line := range strings.Lines(relationsText) {
		words := strings.Fields(line)
		if len(words) < 3 {
			continue
		}
		group, versions, _ := strings.Cut(words[0], "/")
		for version := range strings.SplitSeq(versions, ",") {
			table[group+"/"+version+" "+words[1]] = parseRelation(words[2:])
		}
	}
	return table
})

func parseRelation(words []string) relation {
	switch words[0] {
	case "atomic":
		return relation{kind: whole}
	case "by":
		return relation{kind: byKey, keys: words[1:]}
	case "set":
		return relation{kind: asSet}
	case "default":
		return relation{kind: defaulted, fallback: strings.Join(words[1:], " ")}
	}
	return relation{kind: apart}
}

// typeName is how the table names a Go type: the group and version that the end
// of its package's path is, and its own name.
func typeName(t reflect.Type) string {
	path := t.PkgPath()
	for i, slashes := len(path)-1, 0; i >= 0; i-- {
		if path[i] != '/' {
			continue
		}
		if slashes++; slashes == 2 {
			path = path[i+1:]
			break
		}
	}
	return path + " " + t.Name()
}
