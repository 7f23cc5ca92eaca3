package handlers

import (
	"strings"
	"testing"
)

// TestTheManagerIsStatedOrTheAgent: which the request names, or the program that its
// User-Agent begins with.
func TestTheManagerIsStatedOrTheAgent(t *testing.T) {
	for _, test := range []struct{ stated, agent, want string }{
		{"me", "kubectl/v1.35 (linux/amd64)", "me"},
		{"", "kubectl/v1.35 (linux/amd64)", "kubectl"},
		{"", "a\x01b\u200b c", "ab c"},
		{"", strings.Repeat("x", 127) + "üy/1", strings.Repeat("x", 127)},
		{"", "/1", ""},
	} {
		if got := manager(test.stated, test.agent); got != test.want {
			t.Errorf("%q, %q: %q, want %q", test.stated, test.agent, got, test.want)
		}
	}
}
