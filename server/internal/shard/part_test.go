package shard

import (
	"fmt"
	"testing"
)

// TestPartsDivide: every object is in one of the parts.
func TestPartsDivide(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 64} {
		var parts []*Selector
		for i := range n {
			part, err := ParsePart(fmt.Sprintf("%d/%d", i, n))
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, part)
		}
		for i := range 1000 {
			uid, in := fmt.Sprint("uid-", i), 0
			for _, part := range parts {
				if part.Matches(uid, "") {
					in++
				}
			}
			if in != 1 {
				t.Fatalf("%s is in %d of %d parts", uid, in, n)
			}
		}
		if last := parts[n-1].ranges[0].last; last != 1<<64-1 {
			t.Errorf("the last part of %d ends at %x", n, last)
		}
	}
}

func TestPartErrors(t *testing.T) {
	for _, text := range []string{"", "/", "1/0", "2/2", "-1/2", "a/2", "0/20000", "0/b", "shardRange()"} {
		if s, err := ParsePart(text); err == nil {
			t.Errorf("%q is %s", text, s)
		}
	}
}

func TestCovers(t *testing.T) {
	parse := func(text string) *Selector {
		t.Helper()
		if text == "" {
			return nil
		}
		s, err := ParsePart(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, test := range []struct {
		own, other string
		want       bool
	}{
		{"", "", true}, {"", "0/2", true}, {"0/2", "", false},
		{"0/2", "0/2", true}, {"0/2", "1/4", true}, {"0/2", "2/4", false}, {"1/4", "0/2", false},
		{"0/2", "shardRange(object.metadata.namespace, '0x0', '0x1')", false},
		{"0/2", "shardRange(object.metadata.uid, '0x0', '0x1') || shardRange(object.metadata.uid, '0x9000000000000000', '0xa000000000000000')", false},
		{"0/2", "shardRange(object.metadata.uid, '0x0', '0x1') || shardRange(object.metadata.uid, '0x7000000000000000', '0x8000000000000000')", true},
	} {
		if got := parse(test.own).Covers(parse(test.other)); got != test.want {
			t.Errorf("%q covers %q: %v", test.own, test.other, got)
		}
	}
}
