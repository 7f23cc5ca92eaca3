package pagetoken

import (
	"fmt"
	"testing"
)

// However the tokens begin, and however long the cycle is, it is found, and soon.
func TestCyclesOfTokens(t *testing.T) {
	for before := range 20 {
		for length := 1; length < 20; length++ {
			var c Cycle
			n := 0
			for ; !c.Closes(fmt.Sprint(min(n, before), (n-before)%length)); n++ {
				if n > 3*(before+length) {
					t.Fatalf("a cycle of %d tokens after %d others is not found within %d", length, before, n)
				}
			}
			if n < before+length {
				t.Errorf("a cycle of %d tokens after %d others is found after %d", length, before, n)
			}
		}
	}
}

func TestTokensThatDiffer(t *testing.T) {
	var c Cycle
	for n := range 10_000 {
		if c.Closes(fmt.Sprint(n)) {
			t.Fatalf("token %d was not there before", n)
		}
	}
}

// Most servers that repeat a token repeat that which they were just given.
func TestATokenThatStays(t *testing.T) {
	for before := range 100 {
		var c Cycle
		for n := range before {
			c.Closes(fmt.Sprint(n))
		}
		if c.Closes("x") || !c.Closes("x") {
			t.Errorf("a token that stays after %d others is not found at once", before)
		}
	}
}
