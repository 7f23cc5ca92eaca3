package patterntable

import (
	"regexp"
	"sync"
	"sync/atomic"
	_ "unsafe" // for go:linkname

	"k8s.io/kube-openapi/pkg/validation/validate" // whose variables these are
)

// libraryTable has what the library has compiled, a map[string]*regexp.Regexp that is copied for each change.
//
//go:linkname libraryTable k8s.io/kube-openapi/pkg/validation/validate.reDict
var libraryTable atomic.Value

// libraryMutex is held by whoever changes libraryTable.
//
//go:linkname libraryMutex k8s.io/kube-openapi/pkg/validation/validate.cacheMutex
var libraryMutex *sync.Mutex

// probe is a pattern of which the library is asked where it keeps it.
const probe = "^levelwire:patterntable$"

// found reports whether the library has the variables above. A program with a server in it may be built with another
// version of the library, which has others: its patterns then stay in memory, and none are loaded.
var found = sync.OnceValue(func() bool {
	return libraryMutex != nil && validate.Pattern("", "", probe, probe) != nil && published()[probe] != nil
})

// publish replaces what the library has compiled.
func publish(patterns map[string]*regexp.Regexp) {
	libraryMutex.Lock()
	defer libraryMutex.Unlock()
	libraryTable.Store(patterns)
}

// published returns what the library has compiled. It must not be changed.
func published() map[string]*regexp.Regexp {
	patterns, _ := libraryTable.Load().(map[string]*regexp.Regexp)
	return patterns
}
