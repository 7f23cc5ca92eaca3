package read

import (
	"errors"
	"math"
	"strconv"

	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

var errNoVersion = errors.New("must be a decimal number")

// parseResourceVersion reads a resourceVersion. An empty one is 0; anything that
// is not a decimal number without leading zeros (KEP-5504) is a 400.
func parseResourceVersion(text string) (storage.Revision, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err == nil && (n > math.MaxInt64 || text[0] == '0' && len(text) > 1) {
		err = errNoVersion
	}
	if err != nil {
		return 0, status.BadRequest("invalid resource version: resourceVersion: Invalid value: %q: %v", text, err)
	}
	return storage.Revision(n), nil
}

// FormatResourceVersion returns a revision as clients see it.
func FormatResourceVersion(revision storage.Revision) string {
	return strconv.FormatInt(int64(revision), 10)
}
