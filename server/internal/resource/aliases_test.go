package resource

import (
	"strings"
	"testing"
)

// TestAliasBombsAreRefused: a short YAML body cannot become a long JSON one,
// by repeating long scalars, keys or lists; honest aliases are resolved.
func TestAliasBombsAreRefused(t *testing.T) {
	long := strings.Repeat("y", 20_000)
	for name, body := range map[string]string{
		"scalars": "x: &a " + long + "\nz: [" + strings.Repeat("*a,", 1000) + "*a]\n",
		"keys":    "x: &a " + long + "\nz: [" + strings.Repeat("{*a : 1},", 1000) + "]\n",
		"lists":   "x: &a [" + long + "]\ny: &b [" + strings.Repeat("*a,", 20) + "*a]\nz: [" + strings.Repeat("*b,", 20) + "*b]\n",
	} {
		if _, _, err := yamlToJSON([]byte(body)); err == nil || !strings.Contains(err.Error(), "aliases") {
			t.Errorf("%s: %v", name, err)
		}
	}
	json, strict, err := yamlToJSON([]byte("a: &a {b: c}\nd: *a\n"))
	if err != nil || len(strict) > 0 || string(json) != `{"a":{"b":"c"},"d":{"b":"c"}}` {
		t.Errorf("an honest alias: %s %v %v", json, strict, err)
	}
	if _, _, err := yamlToJSON([]byte("a: '& is no anchor and * no alias " + strings.Repeat(long, 100) + "'")); err != nil {
		t.Errorf("no alias at all: %v", err)
	}
}
