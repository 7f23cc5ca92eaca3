package replay

import "testing"

// TestWithoutVersion: an object is stored without its version, wherever that stands in its metadata.
func TestWithoutVersion(t *testing.T) {
	for object, want := range map[string]string{
		`{"kind":"Pod","metadata":{"resourceVersion":"7","name":"a"},"spec":{"resourceVersion":"x"}}`: `{"kind":"Pod","metadata":{"name":"a"},"spec":{"resourceVersion":"x"}}`,
		`{"metadata":{"name":"a","resourceVersion":"7","uid":"u"}}`:                                   `{"metadata":{"name":"a","uid":"u"}}`,
		`{"metadata":{"name":"a","labels":{"resourceVersion":"8"}, "resourceVersion":"7"}}`:           `{"metadata":{"name":"a","labels":{"resourceVersion":"8"}}}`,
		`{"metadata":{"resourceVersion":"7"}}`:                                                        `{"metadata":{}}`,
		`{"metadata":{"name":"a"}}`:                                                                   `{"metadata":{"name":"a"}}`,
		`{"metadata":7}`:                                                                              `{"metadata":7}`,
		`{"kind":"Pod"}`:                                                                              `{"kind":"Pod"}`,
		`{"metadata":{"resourceVe`:                                                                    `{"metadata":{"resourceVe`,
		`"first"`:                                                                                     `"first"`,
		``:                                                                                            ``,
	} {
		if got := string(withoutVersion([]byte(object))); got != want {
			t.Errorf("%s becomes %s, and not %s", object, got, want)
		}
	}
}
