package resource_test

import (
	"testing"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func TestWithoutManagedFields(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{`{"kind":"A","metadata":{"name":"a","managedFields":[{"x":[1,"}"]}]},"spec":{"managedFields":1}}`, `{"kind":"A","metadata":{"name":"a"},"spec":{"managedFields":1}}`},
		{`{"metadata":{"managedFields":[],"name":"a"}}`, `{"metadata":{"name":"a"}}`},
		{`{"metadata":{"managedFields":null}}`, `{"metadata":{}}`},
		{`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"}}`},
		{`{"spec":1}`, `{"spec":1}`},
	} {
		got, err := resource.WithoutManagedFields([]byte(test.in))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v; want %s", test.in, got, err, test.want)
		}
	}
	for _, bad := range []string{``, `[]`, `{"metadata":[]}`, `{"metadata":{"managedFields":`} {
		if got, err := resource.WithoutManagedFields([]byte(bad)); err == nil {
			t.Errorf("%q gave %q", bad, got)
		}
	}
}
