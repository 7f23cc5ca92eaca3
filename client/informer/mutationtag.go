//go:build levelwire_detect_mutations

package informer

import "time"

// mutationsByTag is the Interval of informers that do not say.
const mutationsByTag = time.Second
