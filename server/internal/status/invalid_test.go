package status

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
