//go:build !unix

package diskreserve

import "errors"

// Free is not available on this system.
func Free(string) (int64, error) { return 0, errors.ErrUnsupported }
