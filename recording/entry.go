package recording

import (
	"fmt"
	"time"
)

// Info describes a recording as a whole.
type Info struct {
	// Server is the URL of the API server, and ServerVersion what it says it is.
	Server        string `json:"server,omitempty"`
	ServerVersion string `json:"serverVersion,omitempty"`
	// Started is when the recording began.
	Started time.Time `json:"started"`
	// Namespaces are those that were recorded; none: all.
	Namespaces []string `json:"namespaces,omitempty"`
	// LeftOut are the resources that the server has and the recording does not.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// LeftOut is a resource that is not in the recording, and why.
type LeftOut struct {
	Resource string `json:"resource"` // secrets, leases.coordination.k8s.io
	Reason   string `json:"reason"`
}

// Resource is a recorded resource, in the version in which its objects were read.
type Resource struct {
	Group      string `json:"group,omitempty"`
	Version    string `json:"version"`
	Resource   string `json:"resource"` // the plural name in URLs
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced,omitempty"`
}

// String is the name that kubectl accepts: deployments.apps.
func (r Resource) String() string {
	if r.Group == "" {
		return r.Resource
	}
	return r.Resource + "." + r.Group
}

// EntryType says what an Entry is.
type EntryType uint8

// The types of entries.
const (
	// Set is the new state of an object.
	Set EntryType = 1 + iota
	// Delete is the end of an object.
	Delete
	// Progress says that the recording is complete up to a revision, without a change.
	Progress
	// Gap says that the server could not send all changes of a resource up to a
	// revision: the entries at it are what a list showed, and steps in between are missing.
	Gap
)

// String is the name of the type.
func (t EntryType) String() string {
	switch t {
	case Set:
		return "set"
	case Delete:
		return "delete"
	case Progress:
		return "progress"
	case Gap:
		return "gap"
	}
	return fmt.Sprintf("EntryType(%d)", uint8(t))
}

// Entry is one change in a recording.
type Entry struct {
	Type EntryType
	// Resource is an index of Reader.Resources, for all types but Progress.
	Resource int
	// Time is when the recorder received the entry.
	Time time.Time
	// Revision is the resourceVersion of the change. Revisions never go down in a
	// recording: see Late.
	Revision int64
	// Late says that the recorder received the change so late that changes after it
	// had been written. Revision is then that of the last of those. The object's own
	// metadata.resourceVersion, in Value, is the true one.
	Late bool
	// Created is, of a Set, the revision at which the object was created; 1 if that was
	// before the recording began.
	Created int64
	// Key is namespace/name, or name for a resource without namespaces.
	Key string
	// Value is, of a Set, the object as JSON, as the server sent it.
	Value []byte
}

// Object is one object of the state at a checkpoint.
type Object struct {
	Resource          int
	Revision, Created int64
	Key               string
	Value             []byte
}
