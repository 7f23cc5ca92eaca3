package differential

import (
	"slices"
	"strings"
)

// oddValues returns the literals that a field is set to, one after the other. current is
// what it has now; nil if it has nothing. Every literal is another one.
func oddValues(s *schema, current any) []string {
	values := []string{"null"}
	if current != nil {
		values = append(values, absent)
	}
	switch s.kind {
	case stringValue:
		for _, member := range s.enum {
			values = append(values, literal(member))
		}
		values = append(values, `""`, `"x"*64`, `"x"*300`, `"Not_Valid/ name!"`, `"-a"`, `"Abc"`, `" "`, `"é"`, `"10.0.0.1"`, `"/a/../b"`, `"example.com/a"`, `1`)
	case integerValue:
		values = append(values, `0`, `1`, `-1`, `101`, `65536`, `2147483648`, `9223372036854775808`, `"1"`, `1.5`)
	case numberValue:
		values = append(values, `0`, `-1`, `1e300`, `"1"`)
	case booleanValue:
		values = append(values, `true`, `false`, `"true"`)
	case quantityValue:
		values = append(values, `"0"`, `"-1"`, `"1"`, `"1500m"`, `"100u"`, `"1.0001Ki"`, `"1Ei"`, `"1.5"`, `"1e30"`, `""`, `"abc"`, `1.5`, `true`)
	case intOrString:
		values = append(values, `0`, `-1`, `65536`, `"0%"`, `"50%"`, `"101%"`, `"-1%"`, `"abc"`, `"Not Valid"`, `""`, `1.5`)
	case timeValue:
		values = append(values, `"2020-01-01T00:00:00Z"`, `"2020-01-01T00:00:00.000001Z"`, `"2020-01-01"`, `""`, `1`)
	case bytesValue:
		values = append(values, `""`, `"YQ=="`, `"!"`, `1`)
	case arrayValue:
		values = append(values, `[]`, `[null]`, `{}`, `"a"`)
		if list, ok := current.([]any); ok && len(list) > 0 {
			values = append(values, twice)
		}
		if item := plausible(s.items, nil); item != nil {
			values = append(values, literal([]any{item}))
		}
	case mapValue:
		values = append(values, `{}`, `[]`, `"a"`)
		for _, key := range []string{"a", "", "Not_Valid/ name!", "x", "a/b/c"} {
			if key == "x" {
				key = strings.Repeat("x", 300)
			}
			if value := plausible(s.values, nil); value != nil {
				values = append(values, literal(map[string]any{key: value}))
			}
		}
	case objectValue:
		values = append(values, `{}`, `[]`, `"a"`)
		if value := plausible(s, nil); value != nil {
			values = append(values, literal(value))
		}
	case anyValue:
		values = append(values, `{}`, `[]`, `"a"`, `1`, `{"a":{"b":1}}`)
	}
	return distinct(values)
}

func distinct(values []string) []string {
	var list []string
	for _, value := range values {
		if !slices.Contains(list, value) {
			list = append(list, value)
		}
	}
	return list
}

// plausible returns a value with everything that the schema requires, or nil if it requires
// itself. within are the objects that the value stands in.
func plausible(s *schema, within []*schema) any {
	if slices.Contains(within, s) {
		return nil
	}
	switch s.kind {
	case objectValue:
		object := map[string]any{}
		for _, name := range s.required {
			if field := s.fields[name]; field != nil {
				object[name] = plausible(field, append(within, s))
			}
		}
		return object
	case arrayValue:
		if item := plausible(s.items, append(within, s)); item != nil {
			return []any{item}
		}
		return []any{}
	default:
		values := guesses(s)
		return values[0]
	}
}

// guesses are values that a server may well accept, the likeliest first, of everything but
// objects and arrays.
func guesses(s *schema) []any {
	switch s.kind {
	case stringValue:
		if len(s.enum) > 0 {
			return s.enum
		}
		return []any{"example", "example.com/a", "10.0.0.1", "/example", "10.0.0.0/24", "Example", "a=b", "1", "https://example.com", "true"}
	case integerValue, numberValue:
		return []any{1, 0, 2, 1000, 65534}
	case booleanValue:
		return []any{true, false}
	case quantityValue:
		return []any{"1", "1Gi"}
	case intOrString:
		return []any{1, "50%", "http"}
	case timeValue:
		if strings.Contains(s.name, "Micro") {
			return []any{"2020-01-01T00:00:00.000000Z"}
		}
		return []any{"2020-01-01T00:00:00Z"}
	case bytesValue:
		return []any{"YQ=="}
	case mapValue:
		value := plausible(s.values, nil)
		return []any{map[string]any{"example": value}, map[string]any{"cpu": value}, map[string]any{"example.com/a": value}}
	default:
		return []any{map[string]any{"a": "b"}}
	}
}
