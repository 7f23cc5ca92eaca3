package configfile

import (
	"errors"
	"strings"
	"testing"
)

// TestCheckKind: what is not of the kind gets an error that says what it must be.
func TestCheckKind(t *testing.T) {
	const want = "kind must be Policy, and apiVersion example.com/v1 or example.com/v2; they are "
	for content, problem := range map[string]string{
		"kind: Policy\napiVersion: example.com/v1\n":         "",
		`{"kind": "Policy", "apiVersion": "example.com/v2"}`: "",
		" \n":         "the file is empty",
		"a: [":        "yaml: line 1: ",
		"- 1\n":       "cannot unmarshal",
		"kind: Pod\n": want + `"Pod" and ""`,
		"kind: Policy\napiVersion: example.com/v3": want + `"Policy" and "example.com/v3"`,
	} {
		err := CheckKind([]byte(content), "Policy", "example.com/v1", "example.com/v2")
		if (err == nil) != (problem == "") || err != nil && (!strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %v, want %q", content, err, problem)
		}
	}
}

// TestOneLine: line breaks become spaces, and the error is still found.
func TestOneLine(t *testing.T) {
	cause := errors.New("one:\n\ttwo")
	if err := OneLine(cause); err.Error() != "one: two" || !errors.Is(err, cause) {
		t.Error(err)
	}
}
