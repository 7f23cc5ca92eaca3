package patterntable

import (
	"regexp"
	"sync"
	"sync/atomic"
	_ "unsafe" // for go:linkname

	_ "k8s.io/kube-openapi/pkg/validation/validate" // whose variables these are
)

// libraryTable has what the library has compiled, a map[string]*regexp.Regexp that is copied for each change.
//
//go:linkname libraryTable k8s.io/kube-openapi/pkg/validation/validate.reDict
var libraryTable atomic.Value

// libraryMutex is held by whoever changes libraryTable.
//
//go:linkname libraryMutex k8s.io/kube-openapi/pkg/validation/validate.cacheMutex
var libraryMutex *sync.Mutex

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
