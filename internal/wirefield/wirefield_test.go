package wirefield_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/internal/wirefield"
)

type inner struct {
	First  string `json:"first,omitempty" protobuf:"bytes,1,opt,name=first"`
	Second []int  `json:"second" protobuf:"varint,4,rep,packed,name=second"`
}

type base struct{ Own int32 }

type outer struct {
	inner `json:",inline" protobuf:"bytes,7,opt,name=inner"`
	base  `json:"named"`
	*Linked
	Left   string `json:"-"`
	Dash   string `json:"-,"` //nolint:staticcheck // a field that is named "-"
	Plain  int
	Zero   struct{} `json:"zero,omitzero"`
	Quoted int      `json:"quoted,string,omitempty"`
	hidden int
}

// Linked is embedded by a pointer.
type Linked struct{ Far int }

func TestMembers(t *testing.T) {
	_ = outer{}.hidden
	got := func(fields []wirefield.Field) string {
		var lines []string
		for _, f := range fields {
			var flags []string
			for flag, set := range map[string]bool{"": f.Tagged} {
				if !set {
					flags = append(flags, flag+"untagged")
				}
			}
			for _, flag := range []struct {
				name string
				set  bool
			}{{"embedded", f.Embedded}, {"omitempty", f.OmitEmpty}, {"omitzero", f.OmitZero}, {"packed", f.Packed}} {
				if flag.set {
					flags = append(flags, flag.name)
				}
			}
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %d %s %s", f.Name, f.Number, strings.Join(flags, " "), strings.Join(f.Others, " "))))
		}
		return strings.Join(lines, "\n")
	}
	check := func(name string, fields []wirefield.Field, want string) {
		t.Helper()
		if got := got(fields); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	typ := reflect.TypeFor[outer]()
	tail := "\nnamed 0\nLinked 0 untagged embedded\n- 0\nPlain 0 untagged\nzero 0 omitzero\nquoted 0 omitempty string"
	check("Of", wirefield.Of(typ), "inner 7 untagged embedded"+tail)
	members := wirefield.Members(typ)
	check("Members", members, "first 1 omitempty\nsecond 4 packed"+tail)

	value := outer{inner: inner{Second: []int{5}}}
	second := members[1]
	if v := reflect.ValueOf(value).FieldByIndex(second.Go.Index); v.Len() != 1 {
		t.Errorf("index %v is of %v", second.Go.Index, v)
	}
	if want := typ.Field(0).Offset + reflect.TypeFor[inner]().Field(1).Offset; second.Go.Offset != want {
		t.Errorf("offset %d, want %d", second.Go.Offset, want)
	}
}
