package cli

import (
	"io"
	"os"
	"strings"
	"unicode"
)

// Colours writes escape sequences for terminals that want them (https://no-color.org).
type Colours bool

// ColoursFor returns whether out is a terminal whose user wants colours.
func ColoursFor(out io.Writer) Colours {
	return Colours(os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(out))
}

// The colours, by their numbers in the standard ECMA-48.
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	cyan   = "36"
)

// In returns text in a colour.
func (c Colours) In(colour, text string) string {
	if !c || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Printable replaces control characters in text that others have written: names, keys and
// agents could otherwise write escape sequences to the terminal of their reader.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// ColourOf returns the colour of a type of event.
func ColourOf(event string) string {
	switch event {
	case "ADDED":
		return Green
	case "MODIFIED":
		return Yellow
	case "DELETED":
		return Red
	case "BOOKMARK":
		return Dim
	}
	return cyan
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
