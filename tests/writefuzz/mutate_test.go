package writefuzz

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// odd are values that few fields expect, in JSON.
var odd = func() []json.RawMessage {
	var values []json.RawMessage
	for line := range strings.Lines(`null
0
-1
1
2147483648
9223372036854775807
-9223372036854775808
18446744073709551616
1.5
1e400
true
false
""
"a"
"A_b"
"a.b/c"
"é\u0000"
"\ud800"
"1Gi"
"-1"
"1e9999999"
"999999999999999999999Ei"
"0.0000000000001n"
"@every 1s"
"TZ=UTC"
"*/0"
"2026-01-01T00:00:00Z"
"not-a-time"
"10.0.0.1"
"::ffff:1.2.3.4"
"fd00::1/64"
"None"
"[]"
"{}"
"http://[::1"
"%zz"
".."
"self.x"
"1 + "
"((("
[]
{}
[null]
[{}]
[[]]
["",""]
{"":""}
{"a":null}
`) {
		values = append(values, json.RawMessage(strings.TrimSpace(line)))
	}
	for _, n := range []int{300, 70_000} {
		values = append(values, json.RawMessage(`"`+strings.Repeat("x", n)+`"`))
	}
	return values
}()

// mutator changes JSON values. The same source of randomness leads to the same changes.
type mutator struct {
	*rand.Rand
	odd []json.RawMessage
	// parts are members of all manifests, by name, from which one gets fields of another kind.
	names []string
	parts map[string][]any
}

func pick[T any](m *mutator, list []T) T { return list[m.IntN(len(list))] }

// mutate changes a copy of a value in a few places.
func (m *mutator) mutate(value any) any {
	value = clone(value)
	for range pick(m, []int{1, 1, 1, 2, 3}) {
		paths := pathsOf(value, nil, nil)[1:]
		if len(paths) == 0 {
			break
		}
		path := pick(m, paths)
		switch kind := m.IntN(20); {
		case kind < 11:
			value = set(value, path, pick(m, m.odd))
		case kind < 14:
			value = set(value, path, removed{})
		case kind < 16:
			if list, ok := at(value, path).([]any); ok && len(list) > 0 {
				value = set(value, path, append(slices.Clone(list), clone(pick(m, list))))
			}
		case kind < 18:
			value = set(value, path, clone(at(value, pick(m, paths))))
		default:
			if _, ok := at(value, path).(map[string]any); ok {
				name := pick(m, m.names)
				value = set(value, append(slices.Clone(path), name), clone(pick(m, m.parts[name])))
			}
		}
	}
	return value
}

// patch makes a JSON patch of an object.
func (m *mutator) patch(object any) []map[string]any {
	paths := pathsOf(object, nil, nil)
	var operations []map[string]any
	for range 1 + m.IntN(3) {
		path := pick(m, paths)
		operation := map[string]any{"op": pick(m, []string{"add", "remove", "replace", "copy", "move", "test"}), "path": pointer(path)}
		switch operation["op"] {
		case "add", "replace", "test":
			operation["value"] = pick(m, m.odd)
			if m.IntN(2) == 0 {
				operation["value"] = at(object, pick(m, paths))
			}
		case "copy", "move":
			operation["from"] = pointer(pick(m, paths))
		}
		operations = append(operations, operation)
	}
	return operations
}

func pointer(path []any) string {
	var b strings.Builder
	for _, step := range path {
		name, ok := step.(string)
		if !ok {
			name = strconv.Itoa(step.(int))
		}
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return b.String()
}

// pathsOf returns the paths of a value and of all values in it, itself first. A step is the
// name of a member or an index.
func pathsOf(value any, path []any, paths [][]any) [][]any {
	paths = append(paths, slices.Clone(path))
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			paths = pathsOf(value[name], append(path, name), paths)
		}
	case []any:
		for i := range value {
			paths = pathsOf(value[i], append(path, i), paths)
		}
	}
	return paths
}

// at returns the value at a path, nil if there is none.
func at(value any, path []any) any {
	for _, step := range path {
		switch parent := value.(type) {
		case map[string]any:
			value = parent[step.(string)]
		case []any:
			i := step.(int)
			if i >= len(parent) {
				return nil
			}
			value = parent[i]
		default:
			return nil
		}
	}
	return value
}

// removed in place of a value takes it away.
type removed struct{}

// set returns the value with another one at a path, which it changes in place where it can.
func set(value any, path []any, to any) any {
	if len(path) == 0 {
		return to
	}
	switch parent := value.(type) {
	case map[string]any:
		name, ok := path[0].(string)
		if !ok {
			return value
		}
		changed := set(parent[name], path[1:], to)
		if _, gone := changed.(removed); gone {
			delete(parent, name)
			break
		}
		parent[name] = changed
	case []any:
		i, ok := path[0].(int)
		if !ok || i >= len(parent) {
			return value
		}
		changed := set(parent[i], path[1:], to)
		if _, gone := changed.(removed); gone {
			return slices.Delete(parent, i, i+1)
		}
		parent[i] = changed
	}
	return value
}

func clone(value any) any {
	switch value := value.(type) {
	case map[string]any:
		result := make(map[string]any, len(value))
		for name, member := range value {
			result[name] = clone(member)
		}
		return result
	case []any:
		result := make([]any, len(value))
		for i := range value {
			result[i] = clone(value[i])
		}
		return result
	}
	return value
}
