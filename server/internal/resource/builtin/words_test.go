package builtin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// refusal is a new object that is refused with these errors, in this order and in kube-apiserver's words.
type refusal struct {
	manifest string
	edits    []string
	want     []string
}

func checkRefusals(t *testing.T, table []refusal) {
	t.Helper()
	for _, tt := range table {
		t.Run(tt.manifest+" "+strings.Join(tt.edits, " "), func(t *testing.T) {
			r, obj := manifest(t, tt.manifest, tt.edits...)
			var got []string
			for _, err := range validateNew(r, obj) {
				got = append(got, err.Error())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// warnings are those of an object's rules, without the one about kinds on which nothing here acts.
func warnings(r *resource.Resource, obj, old resource.Object) []string {
	return slices.DeleteFunc(r.Strategy.Warnings(obj, old), func(w string) bool { return strings.Contains(w, " here") })
}
