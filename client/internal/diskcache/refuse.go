package diskcache

import "fmt"

// Reason classifies why a file was refused.
type Reason string

// The reasons. They are stable, and fit for a metric's label.
const (
	Foreign   Reason = "foreign"   // not a cache file, or that of another informer
	Newer     Reason = "newer"     // written in a format that this program does not know
	Truncated Reason = "truncated" // it ends too early
	Corrupt   Reason = "corrupt"   // its checksums or its structure are wrong
	TooLarge  Reason = "too large" // it exceeds Limits
)

// RefusedError is a file that cannot be used. The caller lists, and writes a
// new file in its place.
type RefusedError struct {
	Path   string
	Reason Reason
	Detail string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("cache file %s refused: %s: %s", e.Path, e.Reason, e.Detail)
}
