// Package mergestrategy knows how server-side apply merges the values of the
// built-in kinds: which lists have keys or are sets, and which structs and maps
// change only as a whole. Kubernetes writes this as +listType, +listMapKey,
// +mapType and +structType in the sources of its types; at run time the Go
// types do not say it.
package mergestrategy

import (
	_ "embed"
	"reflect"
	"strings"
	"sync"
)

// strategiesText has one line for each type or field whose strategy is not the
// default: group/versions, type or type.field, strategy. By default lists are
// atomic, structs and maps are not. Tests of fieldmanager and of openapi hold
// it against the schema in client-go.
//
//go:embed strategies.txt
var strategiesText string

// Strategy says how the elements of a list, the members of a struct or the
// entries of a map are merged.
type Strategy struct {
	Kind Kind
	// Keys are the names of the members that tell the elements of a Map list
	// apart. Shared: not to be changed.
	Keys []string
	// Default, of a KeyDefault member, is the value of the key where the member
	// is absent.
	Default string
}

// Kind is the kind of a Strategy.
type Kind uint8

// The kinds of strategies.
const (
	Unmarked   Kind = iota // Kubernetes' default for the Go type
	Atomic                 // one value, owned by one manager
	Map                    // a list whose elements are told apart by Keys
	Set                    // a list of scalars, each its own key
	Granular               // not atomic here, though its type is
	KeyDefault             // a member of a list's key that may be absent
)

// OfType returns the strategy of a struct type.
func OfType(t reflect.Type) Strategy { return strategies()[TypeName(t)] }

// OfField returns the strategy of a struct type's field, by its JSON name. A
// field that is not in the table has the strategy of its own type.
func OfField(t reflect.Type, field string) Strategy { return strategies()[TypeName(t)+"."+field] }

// strategies is the table, keyed by "group/version Type" and
// "group/version Type.field".
var strategies = sync.OnceValue(func() map[string]Strategy {
	table := make(map[string]Strategy, 256)
	for line := range strings.Lines(strategiesText) {
		words := strings.Fields(line)
		if len(words) < 3 {
			continue
		}
		group, versions, _ := strings.Cut(words[0], "/")
		for version := range strings.SplitSeq(versions, ",") {
			table[group+"/"+version+" "+words[1]] = parse(words[2:])
		}
	}
	return table
})

func parse(words []string) Strategy {
	switch words[0] {
	case "atomic":
		return Strategy{Kind: Atomic}
	case "by":
		return Strategy{Kind: Map, Keys: words[1:]}
	case "set":
		return Strategy{Kind: Set}
	case "default":
		return Strategy{Kind: KeyDefault, Default: strings.Join(words[1:], " ")}
	}
	return Strategy{Kind: Granular}
}

// TypeName returns the name of a Go type in the table: the group and version
// that its package's path ends with, and its own name.
func TypeName(t reflect.Type) string {
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
