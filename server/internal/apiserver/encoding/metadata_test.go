package encoding

import "testing"

func TestValueEnd(t *testing.T) {
	for _, value := range []string{
		`{}`, `{"a":"}"}`, `{"a":"\"}"}`, `{"a":"\\"}`, `{"a":"\\\"}","b":[{"c":"]"}]}`, `{"a":{"b":{}},"c":1}`, `{"":"\\\\"}`,
	} {
		if got := valueEnd([]byte(value + `,"spec":{"x":"y"}}`)); got != len(value) {
			t.Errorf("%s ends at %d, want %d", value, got, len(value))
		}
	}
}
