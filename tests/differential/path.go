package differential

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// path leads to a field of an object: names of members (string) and indexes (int).
type path []any

// plainName is a member that needs no quotes in a path.
var plainName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_-]*$`)

// String writes a path as Kubernetes does: spec.ports[0].name; a member that is no plain
// name stands in brackets, quoted.
func (p path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			switch {
			case !plainName.MatchString(step):
				fmt.Fprintf(&b, "[%q]", step)
			case b.Len() > 0:
				b.WriteString("." + step)
			default:
				b.WriteString(step)
			}
		}
	}
	return b.String()
}

// pointer writes a path as RFC 6901 does: /spec/ports/0/name.
func (p path) pointer() string {
	var b strings.Builder
	for _, step := range p {
		b.WriteString("/" + escapePointer.Replace(fmt.Sprint(step)))
	}
	return b.String()
}

// child returns the path of a member or item. It does not share memory with p.
func (p path) child(step any) path {
	return append(p[:len(p):len(p)], step)
}

// shape is the path without its indexes and quoted members, which tell one item of a list
// or map from another.
func (p path) shape() string {
	var b strings.Builder
	for _, step := range p {
		name, isName := step.(string)
		switch {
		case !isName:
			b.WriteString("[]")
		case !plainName.MatchString(name):
			b.WriteString("[*]")
		case b.Len() > 0:
			b.WriteString("." + name)
		default:
			b.WriteString(name)
		}
	}
	return b.String()
}

// parsePath reads what String has written, up to the first character that cannot belong to
// a path, and returns the rest.
func parsePath(text string) (p path, rest string, err error) {
	rest = text
	for {
		switch {
		case strings.HasPrefix(rest, `["`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil {
				return nil, "", fmt.Errorf("path %q: a quoted member has no end", text)
			}
			name, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, "", fmt.Errorf("path %q: %w", text, err)
			}
			rest = rest[1+len(quoted):]
			if !strings.HasPrefix(rest, "]") {
				return nil, "", fmt.Errorf("path %q: a bracket has no end", text)
			}
			p, rest = append(p, name), rest[1:]
		case strings.HasPrefix(rest, "["):
			number, after, ok := strings.Cut(rest[1:], "]")
			index, err := strconv.Atoi(number)
			if !ok || err != nil {
				return nil, "", fmt.Errorf("path %q: an index is not a number", text)
			}
			p, rest = append(p, index), after
		default:
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexFunc(rest, func(r rune) bool { return !nameRune(r) })
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return nil, "", fmt.Errorf("path %q: a member has no name", text)
			}
			p, rest = append(p, rest[:end]), rest[end:]
		}
		if rest == "" || rest[0] != '.' && rest[0] != '[' {
			return p, rest, nil
		}
	}
}

func nameRune(r rune) bool {
	return r == '_' || r == '$' || r == '-' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// get returns what is at a path of a JSON value.
func get(value any, p path) (any, bool) {
	for _, step := range p {
		switch step := step.(type) {
		case int:
			list, ok := value.([]any)
			if !ok || step >= len(list) {
				return nil, false
			}
			value = list[step]
		case string:
			object, ok := value.(map[string]any)
			if !ok {
				return nil, false
			}
			if value, ok = object[step]; !ok {
				return nil, false
			}
		}
	}
	return value, true
}

// replaceAt returns value with what is at a path replaced by what change returns; false
// removes a member, or an item of a list. Values on the way are copied, so that value stays
// as it was. Objects that are missing on the way are made; a list item must exist, or be
// the next one.
func replaceAt(value any, p path, change func(old any) (any, bool)) (any, bool, error) {
	if len(p) == 0 {
		changed, keep := change(value)
		return changed, keep, nil
	}
	switch step := p[0].(type) {
	case int:
		list, ok := value.([]any)
		if value != nil && !ok || step > len(list) {
			return nil, false, fmt.Errorf("there is no item %d in %v", step, value)
		}
		list = append([]any(nil), list...)
		if step == len(list) {
			list = append(list, nil)
		}
		changed, keep, err := replaceAt(list[step], p[1:], change)
		if err != nil {
			return nil, false, err
		}
		if !keep {
			return append(list[:step], list[step+1:]...), true, nil
		}
		list[step] = changed
		return list, true, nil
	default:
		name := step.(string)
		object, ok := value.(map[string]any)
		if value != nil && !ok {
			return nil, false, fmt.Errorf("there is no member %s in %v", name, value)
		}
		changed, keep, err := replaceAt(object[name], p[1:], change)
		if err != nil {
			return nil, false, err
		}
		object = copyMembers(object)
		if keep {
			object[name] = changed
		} else {
			delete(object, name)
		}
		return object, true, nil
	}
}

func copyMembers(object map[string]any) map[string]any {
	result := make(map[string]any, len(object)+1)
	for name, value := range object {
		result[name] = value
	}
	return result
}
