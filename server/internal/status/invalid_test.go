package status

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestInvalidIsBounded: errors that each show a long list are not all said. The others are.
func TestInvalidIsBounded(t *testing.T) {
	list := make([]string, 20_000)
	for i := range list {
		list[i] = fmt.Sprint("element ", i)
	}
	const many = 10_000
	for name, test := range map[string]struct {
		value any
		least int // of causes
		most  int
	}{
		"short values": {"x", many, many},
		"long values":  {list, 3, 100},
	} {
		var errs field.ErrorList
		for i := range many {
			errs = append(errs, field.Invalid(field.NewPath("spec", "list").Index(i), test.value, "wrong"))
		}
		err := Invalid(schema.GroupKind{Kind: "Pod"}, "p", errs)
		var refused *apierrors.StatusError
		if !errors.As(err, &refused) || refused.ErrStatus.Code != 422 {
			t.Fatalf("%s: %T", name, err)
		}
		causes := refused.ErrStatus.Details.Causes
		if n := len(causes); n < test.least || n > test.most {
			t.Errorf("%s: %d causes", name, n)
		}
		if n := len(refused.ErrStatus.Message); n > 4*maxCauseBytes {
			t.Errorf("%s: a message of %d bytes", name, n)
		}
		last, n := causes[len(causes)-1], len(causes)
		if left := n < many; left != strings.Contains(last.Message, "are left out") {
			t.Errorf("%s: the last cause is %s: %.100s", name, last.Field, last.Message)
		} else if want := fmt.Sprintf("this error and the %d after it are left out", many-n); left && !strings.Contains(last.Message, want) {
			t.Errorf("%s: %s, want %s", name, last.Message, want)
		}
	}
}

// TestInvalidSaysWhatTheLibrarySays: up to the bound, but for what is said twice.
func TestInvalidSaysWhatTheLibrarySays(t *testing.T) {
	one, two := field.Required(field.NewPath("a"), "why"), field.Invalid(field.NewPath("b").Index(1), []string{"x"}, "wrong")
	for _, errs := range []field.ErrorList{nil, {one}, {one, two}, {two, one}} {
		kind := schema.GroupKind{Group: "g", Kind: "K"}
		if got, want := Invalid(kind, "n", errs), error(apierrors.NewInvalid(kind, "n", errs)); !reflect.DeepEqual(normal(got), normal(want)) {
			t.Errorf("%v: %+v, want %+v", errs, got, want)
		}
	}
}

// TestInvalidSaysEachMistakeOnce: a check of all objects and one of a kind may find the same.
func TestInvalidSaysEachMistakeOnce(t *testing.T) {
	one, other := field.Required(field.NewPath("a"), "why"), field.Required(field.NewPath("a"), "because")
	kind := schema.GroupKind{Group: "g", Kind: "K"}
	if got, want := Invalid(kind, "n", field.ErrorList{one, other, one}), Invalid(kind, "n", field.ErrorList{one, other}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// normal returns the status of an error, in which no causes are nil.
func normal(err error) metav1.Status {
	var refused *apierrors.StatusError
	if !errors.As(err, &refused) {
		return metav1.Status{}
	}
	if s := *refused.ErrStatus.DeepCopy(); len(s.Details.Causes) > 0 {
		return s
	}
	refused.ErrStatus.Details.Causes = nil
	return refused.ErrStatus
}
