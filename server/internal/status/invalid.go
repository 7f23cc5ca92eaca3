package status

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxCauseBytes is how much text is said of what is wrong with one object. Some errors show the whole
// list that they are about, as that of a second owner that is the controller: of a list of 3 MB with
// 20,000 such elements, all of them together would be 80 GB.
const maxCauseBytes = 1 << 20

// Invalid is the 422 for an object of a kind and name, with a cause for each error that says what
// none before it has said: several checks find the same mistake. Those that are beyond
// maxCauseBytes are only counted, in the last cause.
func Invalid(kind schema.GroupKind, name string, errs field.ErrorList) error {
	refused := apierrors.NewInvalid(kind, name, nil)
	if len(errs) == 0 {
		return refused
	}
	errs = bounded(errs)
	causes, texts := make([]metav1.StatusCause, len(errs)), make([]error, len(errs))
	for i, err := range errs {
		causes[i] = metav1.StatusCause{Type: metav1.CauseType(err.Type), Message: err.ErrorBody(), Field: err.Field}
		texts[i] = err
	}
	refused.ErrStatus.Details.Causes = causes
	refused.ErrStatus.Message += ": " + Texts(texts)
	return refused
}

// Texts puts together what errors say, each text once, as an aggregate of the library does. That takes
// the square of their number.
func Texts(errs []error) string {
	texts, seen := make([]string, 0, len(errs)), make(sets.Set[string], len(errs))
	for _, err := range errs {
		if text := err.Error(); !seen.Has(text) {
			seen.Insert(text)
			texts = append(texts, text)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// bounded returns the first errors, each once, and one that says how many come after them.
func bounded(errs field.ErrorList) field.ErrorList {
	kept, said, size := make(field.ErrorList, 0, len(errs)), make(sets.Set[string], len(errs)), 0
	for i, err := range errs {
		text := err.Error()
		if !said.Has(text) {
			said.Insert(text)
			kept = append(kept, err)
		}
		size += len(text) // of a repetition, too: it has to be put together to be known as one
		if rest := errs[i+1:]; size > maxCauseBytes && len(rest) > 0 {
			return append(kept, &field.Error{
				Type: field.ErrorTypeInvalid, Field: rest[0].Field, BadValue: field.OmitValueType{},
				Detail: fmt.Sprintf("this error and the %d after it are left out", len(rest)-1),
			})
		}
	}
	return kept
}
