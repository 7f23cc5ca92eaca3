package columns

import (
	"reflect"
	"testing"
)

func TestAtMost(t *testing.T) {
	for want, list := range map[string][]string{
		"":                nil,
		"a,b":             {"a", "b"},
		"a,b + 1 more...": {"a", "b", "c"},
		"c,a + 3 more...": {"c", "a", "b", "b", "d"},
	} {
		if got := AtMost(2, ",", list); got != want {
			t.Errorf("%v: got %q, want %q", list, got, want)
		}
	}
}

func TestSortedSet(t *testing.T) {
	list := []string{"b", "", "a", "b"}
	if got := SortedSet(list); got != "a,b" {
		t.Errorf("got %q", got)
	}
	if !reflect.DeepEqual(list, []string{"b", "", "a", "b"}) {
		t.Errorf("the argument was changed: %v", list)
	}
}
