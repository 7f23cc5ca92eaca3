package differential

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// asker asks whether a server accepts a new object of a kind, and returns what it makes of
// it.
type asker func(ctx context.Context, k *kind, value map[string]any) (*answer, error)

// grow returns a full object: the small one with every field that the server lets it have,
// set one after the other, in the order of names. Of fields that exclude each other, the
// first stays.
func grow(ctx context.Context, ask asker, small *object) (*object, error) {
	return growBase(ctx, ask, small, full, skippedInGrowth)
}

// growStatus returns the small object with a full status.
func growStatus(ctx context.Context, ask asker, small *object) (*object, error) {
	return growBase(ctx, ask, small, withStatus, func(at path) bool { return at[0] != "status" })
}

func growBase(ctx context.Context, ask asker, small *object, base string, skip func(path) bool) (*object, error) {
	g := &growth{ctx: ctx, ask: ask, skip: skip, kind: small.kind, value: small.value}
	g.fields(small.kind.schema, nil, []*schema{small.kind.schema})
	if g.err != nil {
		return nil, g.err
	}
	return &object{small.kind, base, g.value}, nil
}

// Which object of a kind a request begins with.
const (
	small      = "small"
	full       = "full"
	withStatus = "withstatus" // the small one with a full status
	more       = "more"       // with fields that exclude those of the full one; more2 and so on, if there are several
)

type growth struct {
	ctx   context.Context
	ask   asker
	skip  func(path) bool
	kind  *kind
	value map[string]any // so far
	err   error
}

// fields sets what is missing of the object at a path. within are the schemas on the way.
func (g *growth) fields(s *schema, at path, within []*schema) {
	for _, name := range s.fieldNames {
		if g.err != nil {
			return
		}
		field := at.child(name)
		if g.skip(field) {
			continue
		}
		g.field(s.fields[name], field, within)
	}
}

func skippedInGrowth(at path) bool {
	if at[0] == "status" || at[0] == "apiVersion" || at[0] == "kind" {
		return true
	}
	if at[0] == "metadata" && len(at) > 1 {
		return at[1] != "labels" && at[1] != "annotations"
	}
	// The metadata of templates.
	for i, step := range at {
		if step == "metadata" && i+1 < len(at) {
			return at[i+1] != "labels" && at[i+1] != "annotations" && at[i+1] != "name"
		}
	}
	return false
}

// field sets a field, if it is not there, and goes on with what stands in it.
func (g *growth) field(s *schema, at path, within []*schema) {
	if slices.Contains(within, s) && s.kind == objectValue {
		return
	}
	current, ok := get(g.value, at)
	if !ok {
		if !g.set(s, at) {
			return
		}
		current, _ = get(g.value, at)
	}
	switch s.kind {
	case objectValue:
		g.fields(s, at, append(within[:len(within):len(within)], s))
	case arrayValue:
		if list, ok := current.([]any); ok && len(list) > 0 && s.items.kind == objectValue && !slices.Contains(within, s.items) {
			g.fields(s.items, at.child(0), append(within[:len(within):len(within)], s.items))
		}
	case mapValue:
		members, _ := current.(map[string]any)
		if keys := sortedKeys(members); len(keys) > 0 && s.values.kind == objectValue && !slices.Contains(within, s.values) {
			g.fields(s.values, at.child(keys[0]), append(within[:len(within):len(within)], s.values))
		}
	}
}

// set tries candidates for a field until the server accepts one and keeps it.
func (g *growth) set(s *schema, at path) bool {
	for _, candidate := range candidates(s, at) {
		text := literal(candidate)
		value, err := edit{at, text}.apply(g.value)
		if err != nil {
			g.err = err
			return false
		}
		a, err := g.ask(g.ctx, g.kind, value)
		if err != nil {
			g.err = err
			return false
		}
		if !a.accepted() {
			continue
		}
		if _, kept := get(a.Body, at); kept || isZero(candidate) {
			g.value = value
			return true
		}
		if members, ok := candidate.(map[string]any); !ok || len(members) > 0 {
			return false // it drops the field, whatever its value
		}
	}
	return false
}

// isZero reports whether an answer may lack a field with a value, though the server keeps it.
func isZero(value any) bool {
	switch value := value.(type) {
	case []any:
		return len(value) == 0
	default:
		return value == "" || value == false || value == 0
	}
}

// candidates are the values that a field is tried with when an object grows: names in an
// object often have to be those of others in it, which here are all called example.
func candidates(s *schema, at path) []any {
	switch s.kind {
	case objectValue:
		list := []any{plausible(s, nil)}
		required, _ := list[0].(map[string]any)
		for _, name := range s.fieldNames { // one of several may be required
			if field := s.fields[name]; required[name] == nil && field != s {
				for _, value := range firstN(candidatesOfMember(field), 2) {
					list = append(list, with(required, name, value))
				}
			}
		}
		return list
	case arrayValue:
		var list []any
		for _, item := range candidates(s.items, at) {
			list = append(list, []any{item})
		}
		return list
	default:
		list := guesses(s)
		last, _ := at[len(at)-1].(string)
		if special, ok := likely[last]; ok && s.kind == stringValue {
			list = append([]any{special}, list...)
		}
		if strings.HasSuffix(strings.ToLower(last), "port") && s.kind == integerValue {
			list = append([]any{8080}, list...)
		}
		return list
	}
}

// likely are values of strings that have a format of their own.
var likely = map[string]any{
	"name": "example", "path": "/example", "mountPath": "/example", "image": "example.com/example:1", "ip": "10.0.0.1",
	"cidr": "10.0.0.0/24", "key": "example.com/example", "operator": "Exists", "host": "example.com", "protocol": "TCP",
	"topologyKey": "kubernetes.io/hostname", "apiVersion": "v1", "kind": "ConfigMap", "schedule": "0 0 * * *", "timeZone": "Etc/UTC",
	"expression": "true", "driver": "example.com", "scheme": "HTTP", "fieldPath": "metadata.name",
}

func candidatesOfMember(s *schema) []any {
	if s.kind == objectValue || s.kind == arrayValue {
		return []any{plausible(s, nil)}
	}
	return guesses(s)
}

func firstN(list []any, n int) []any { return list[:min(n, len(list))] }

func with(object map[string]any, name string, value any) map[string]any {
	result := copyMembers(object)
	result[name] = value
	return result
}

// sortObjects brings objects into a fixed order.
func sortObjects(list []*object) {
	slices.SortFunc(list, func(a, b *object) int {
		return cmp.Or(cmp.Compare(a.kind.String(), b.kind.String()), -cmp.Compare(a.base, b.base))
	})
}
