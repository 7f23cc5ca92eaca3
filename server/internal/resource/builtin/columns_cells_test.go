package builtin_test

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// epoch is when the tests look.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(now time.Time) builtin.Printer { return builtin.Printer{Now: func() time.Time { return now }} }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(epoch.Add(-d)) }

func createdAgo(name string, age time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "default", CreationTimestamp: ago(age)}
}

// cells makes the row of a typed object, whose kind the scheme knows.
func cells(t *testing.T, obj resource.Object) []any {
	t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		t.Fatal(err)
	}
	_, row := at(epoch).For(kinds[0])
	return row(obj)
}

func wantCells(t *testing.T, got []any, want ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %#v\nwant %#v", got, want)
	}
}

// rowTest is one object and the row it makes.
type rowTest struct {
	name string
	obj  resource.Object
	want []any
}

func runRows(t *testing.T, tests []rowTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { wantCells(t, cells(t, test.obj), test.want...) })
	}
}

func ptr[T any](v T) *T { return &v }
