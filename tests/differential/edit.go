package differential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// edit sets one field of an object. Its value is a literal:
//
//	absent      the field is removed
//	twice       the first item of a list stands there once more
//	stored      what the server has of the field is filled in
//	doubled     the member stands there twice
//	"x"*300     a string, repeated
//	JSON        anything else
type edit struct {
	at    path
	value string
}

const (
	absent = "absent"
	twice  = "twice"
)

func (e edit) String() string { return e.at.String() + "=" + e.value }

// apply returns an object with the edit. object stays as it was.
func (e edit) apply(object map[string]any) (map[string]any, error) {
	if e.value == doubled {
		return double(object, e.at)
	}
	var failed error
	result, _, err := replaceAt(object, e.at, func(old any) (any, bool) {
		switch e.value {
		case absent:
			return nil, false
		case twice:
			list, ok := old.([]any)
			if !ok || len(list) == 0 {
				failed = fmt.Errorf("%v: there is no item to repeat", e)
				return old, true
			}
			return append(list[:len(list):len(list)], list[0]), true
		case stored:
			return old, old != nil
		}
		value, rest, err := parseLiteral(e.value)
		if err == nil && rest != "" {
			err = fmt.Errorf("%q follows the value", rest)
		}
		if err != nil {
			failed = fmt.Errorf("%v: %w", e, err)
		}
		return value, true
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return result.(map[string]any), nil
}

// parseEdit reads an edit and returns what follows it.
func parseEdit(text string) (edit, string, error) {
	at, rest, err := parsePath(text)
	if err != nil {
		return edit{}, "", err
	}
	value, ok := strings.CutPrefix(rest, "=")
	if !ok {
		return edit{}, "", fmt.Errorf("%q: '=' must follow %v", text, at)
	}
	for _, word := range []string{absent, twice, stored, doubled} {
		if after, ok := strings.CutPrefix(value, word); ok {
			return edit{at, word}, after, nil
		}
	}
	_, after, err := parseLiteral(value)
	if err != nil {
		return edit{}, "", fmt.Errorf("%q: %w", text, err)
	}
	return edit{at, strings.TrimSuffix(value, after)}, after, nil
}

// parseLiteral reads JSON, or a string and how often it is repeated.
func parseLiteral(text string) (value any, rest string, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, "", err
	}
	rest = text[decoder.InputOffset():]
	word, isString := value.(string)
	times, repeated := strings.CutPrefix(rest, "*")
	if !isString || !repeated {
		return value, rest, nil
	}
	end := strings.IndexFunc(times, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(times)
	}
	n, err := strconv.Atoi(times[:end])
	if err != nil {
		return nil, "", err
	}
	return strings.Repeat(word, n), times[end:], nil
}

// literal writes a value as JSON on one line.
func literal(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // values come from JSON or from this package
	}
	return strings.TrimSuffix(b.String(), "\n")
}
