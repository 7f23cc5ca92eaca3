package process

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	var last tail
	for i := range 1000 {
		fmt.Fprintf(&last, "line %d\n", i)
	}
	if s := last.String(); !strings.HasSuffix(s, "\n\tline 999") || len(s) > 2*tailSize || bytes.Contains([]byte(s), []byte("line 1\n")) {
		t.Errorf("the end of a log is %q", s)
	}
}
