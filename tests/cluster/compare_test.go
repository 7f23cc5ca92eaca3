//go:build linux

package cluster

import (
	"slices"
	"testing"
)

// TestCompareNotices: a watch must show each change once, in order.
func TestCompareNotices(t *testing.T) {
	history := []change{{"default/a", 5, false}, {"default/b", 6, false}, {"default/a", 7, true}, {"default/a", 9, false}}
	if err := (&record{changes: slices.Clone(history)}).compare(history); err != nil {
		t.Error(err)
	}
	for name, seen := range map[string][]change{
		"a change is missing":       slices.Delete(slices.Clone(history), 1, 2),
		"the last is missing":       history[:3],
		"one comes twice":           slices.Insert(slices.Clone(history), 1, history[0]),
		"the last comes twice":      append(slices.Clone(history), history[3]),
		"two are in another order":  {history[1], history[0], history[2], history[3]},
		"a deletion is a change":    {history[0], history[1], {"default/a", 7, false}, history[3]},
		"one that was not made":     slices.Insert(slices.Clone(history), 3, change{"default/c", 8, false}),
		"the version is another's":  {history[0], {"default/b", 5, false}, history[2], history[3]},
		"nothing was seen, of four": nil,
	} {
		if err := (&record{changes: seen}).compare(history); err == nil {
			t.Errorf("not noticed: %s", name)
		}
	}
}
