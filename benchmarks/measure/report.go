package measure

import (
	"bytes"
	"fmt"
	"os"
	"slices"
)

// ReplaceBetween puts text between two lines of a file, in place of what stands
// there. The rest of the file is for people to write.
func ReplaceBetween(path, begin, end string, text []byte) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page, err := replaceBetween(old, begin, end, text)
	if err != nil {
		return fmt.Errorf("%s %w", path, err)
	}
	return os.WriteFile(path, page, 0o644)
}

func replaceBetween(old []byte, begin, end string, text []byte) ([]byte, error) {
	head, rest, found := bytes.Cut(old, []byte(begin+"\n"))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return nil, fmt.Errorf("has no lines %q and %q that mark where results belong", begin, end)
	}
	return slices.Concat(head, []byte(begin+"\n"), text, []byte("\n"+end), tail), nil
}
