package contain

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

func TestCall(t *testing.T) {
	called := false
	if err := Call("it", func() { called = true }); err != nil || !called {
		t.Errorf("called %v, %v", called, err)
	}
}

// TestPanicIsOneLine: the text says what panicked, why and where, and the stack is beside it.
func TestPanicIsOneLine(t *testing.T) {
	var nothing *struct{ field int }
	for what, test := range map[string]struct {
		call func()
		want string
	}{
		"a panic":         {func() { panic("why") }, `^a panic panicked: why \(contain\.TestPanicIsOneLine\.func\d+, contain_test\.go:\d+\)$`},
		"an error":        {func() { panic(io.EOF) }, `^an error panicked: EOF \(contain\.TestPanicIsOneLine\.func\d+, contain_test\.go:\d+\)$`},
		"a nil pointer":   {func() { nothing.field++ }, `^a nil pointer panicked: runtime error: invalid memory .* \(contain\.TestPanicIsOneLine\.func\d+, contain_test\.go:\d+\)$`},
		"a nested panic":  {func() { defer func() { panic(recover()) }(); panic("why") }, `^a nested panic panicked: why .*\(contain\.TestPanicIsOneLine\.func\d+\.\d+, contain_test\.go:\d+\)$`},
		"two lines":       {func() { panic("one\ntwo") }, `^two lines panicked: "one\\ntwo" \(contain\.TestPanicIsOneLine\.func\d+, contain_test\.go:\d+\)$`},
		"a deep function": {func() { t.Log(strings.Repeat("x", -1)) }, `^a deep function panicked: strings: negative Repeat count \(strings\.Repeat, strings\.go:\d+\)$`},
	} {
		err := Call(what, test.call)
		if err == nil || !regexp.MustCompile(test.want).MatchString(err.Error()) {
			t.Errorf("%s: got %v, want %s", what, err, test.want)
		}
		var panicked *PanicError
		if !errors.As(err, &panicked) || !bytes.Contains(panicked.Stack, []byte("TestPanicIsOneLine")) {
			t.Errorf("%s: the stack is not known", what)
		}
		if errors.Is(err, io.EOF) != (what == "an error") {
			t.Errorf("%s: wraps another error", what)
		}
	}
}

func TestCounterLogsSome(t *testing.T) {
	var log bytes.Buffer
	var c Counter
	logger := slog.New(slog.NewTextHandler(&log, nil))
	for n := range 123 {
		c.Call(logger, "it", func() {
			if n >= 3 {
				panic("why")
			}
		})
	}
	if got := strings.Count(log.String(), "it panicked: why"); c.Count() != 120 || got != 3 {
		t.Errorf("counted %d, logged %d", c.Count(), got)
	}
}
