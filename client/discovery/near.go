package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxNear is how many names an error proposes.
const maxNear = 3

// unknownName is the error for a name that no resource has.
type unknownName struct {
	name string
	near []string
}

func (e *unknownName) Error() string {
	text := fmt.Sprintf("the server serves no resource called %q", e.name)
	if len(e.near) > 0 {
		text += " (is it " + strings.Join(e.near, ", or ") + "?)"
	}
	return text
}

// Unwrap has meta.IsNoMatchError say what it is.
func (e *unknownName) Unwrap() error {
	return &meta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Resource: e.name}}
}

// near returns the full names of resources that the user may have meant: those that have the
// name in another group or version, and those whose names differ from it in a letter or two.
func near(all []Resource, name string) []string {
	asked, _, _ := strings.Cut(strings.ToLower(name), ".")
	type candidate struct {
		name     string
		distance int
	}
	var candidates []candidate
	for _, r := range Preferred(all) {
		distance := len(asked)
		for _, own := range append([]string{r.Mapping.Resource, r.Singular, strings.ToLower(r.Mapping.Kind.Kind)}, r.ShortNames...) {
			distance = min(distance, editDistance(asked, own))
		}
		if distance <= len(asked)/3 && distance <= 2 && asked != "" {
			candidates = append(candidates, candidate{r.GroupVersionResource().GroupResource().String(), distance})
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, c := range candidates[:min(len(candidates), maxNear)] {
		names = append(names, c.name)
	}
	return names
}

// editDistance is the number of letters to insert, delete or replace (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
