package resource_test

import (
	"testing"

	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestIsCached compares with what WithRevision makes.
func TestIsCached(t *testing.T) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	const head = `{"kind":"Pod","apiVersion":"v1","metadata":{`
	for _, stored := range []string{
		head + `"name":"p"},"spec":{}}`, head + `"name":"q"},"spec":{}}`, head + `}}`, head + `"resourceVersion":"7","name":"p"},"spec":{}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{}}`, `{"kind":"Node"`, ``,
	} {
		for _, cached := range []string{
			head + `"resourceVersion":"7","name":"p"},"spec":{}}`, head + `"resourceVersion":"8","name":"p"},"spec":{}}`,
			head + `"resourceVersion":"7"}}`, head + `"name":"p"},"spec":{}}`, head, ``,
		} {
			made, err := pods.WithRevision([]byte(stored), 7)
			want := err == nil && string(made) == cached
			if got := pods.IsCached([]byte(stored), 7, []byte(cached)); got != want {
				t.Errorf("IsCached(%s, 7, %s) is %v", stored, cached, got)
			}
		}
	}
}
