package process

import (
	"fmt"
	"strings"
)

// WrongFlag returns a UsageError about a flag, or about an argument if flag is empty.
func WrongFlag(flag, format string, args ...any) error {
	return &UsageError{Flag: flag, Reason: fmt.Sprintf(format, args...)}
}

// NoArguments returns a UsageError if there are arguments beside the flags.
func NoArguments(arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	return WrongFlag("", "%q is no flag, and there are no other arguments", arguments[0])
}

// Words returns the words between commas and spaces, as flags have lists.
func Words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
