package reflector

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/levelwire/levelwire/client"
)

// older reports whether resourceVersion a is surely before b. They are decimal
// numbers (KEP-5504); those of a server with others can be compared for
// equality only, so none of them is older.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// position is where an event stands beside what the store has reached.
type position struct {
	version, reached string
	behind           bool // surely before it
	leads            bool // a watch may resume from the event's version, see leadsOn
}

// positionOf compares once for each event: of two numbers one comparison says both.
func positionOf(version, reached string) position {
	if order, err := resourceversion.CompareResourceVersion(version, reached); err == nil {
		return position{version, reached, order < 0, true}
	}
	return position{version, reached, false, leadsOn(reached, version)}
}

// covers reports whether a version is surely not before another.
func covers(version, other string) bool {
	return version == other || isNumber(version) && isNumber(other) && !older(version, other)
}

// isNumber reports whether a resourceVersion can be compared with others.
func isNumber(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}

// leadsOn reports whether a watch may resume from a version after another. An object may have
// another kind of version than its server's lists and bookmarks, whose numbers can be resumed from.
func leadsOn(from, version string) bool {
	return isNumber(version) || unset(from) || !isNumber(from)
}

// versionOf is the resourceVersion of an event's object; "" if it names no state.
func versionOf[T client.Object](obj T) string {
	if version := obj.GetResourceVersion(); !unset(version) {
		return version
	}
	return ""
}

// unset reports whether a resourceVersion names no state: a watch from it
// begins with synthetic events.
func unset(version string) bool { return version == "" || version == "0" }

// reachedVersion is the resourceVersion that the store has reached. It moves with each event, so it is a string
// under a lock, which is taken last and held for a moment, and not a pointer to one, which would be allocated.
type reachedVersion struct {
	mu      sync.Mutex
	version string
}

func (v *reachedVersion) get() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.version
}

// move returns false if that is the version already.
func (v *reachedVersion) move(to string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.version == to {
		return false
	}
	v.version = to
	return true
}
