package debugapi

import (
	"encoding/json"
	"time"
)

// Logs are the watch caches of a server.
type Logs struct {
	// Now is the server's clock, Started when it began.
	Now     time.Time `json:"now"`
	Started time.Time `json:"started"`
	// Revision is the latest that any cache has reached.
	Revision int64 `json:"revision"`
	// Watchers are the open watches, of all resources.
	Watchers  int   `json:"watchers"`
	Resources []Log `json:"resources"`
}

// Log is the cache of one stored resource: its state and its shared event log.
type Log struct {
	Group    string `json:"group"`
	Version  string `json:"version"` // that clients prefer
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
	// Namespaced resources have objects in namespaces.
	Namespaced bool `json:"namespaced"`
	// Ready is false until the cache has been filled.
	Ready bool `json:"ready"`

	// Objects are those of the newest state, and ObjectBytes the size of their JSON.
	Objects     int   `json:"objects"`
	ObjectBytes int64 `json:"objectBytes"`
	// Revision is the one that the cache has reached; Changed that of its latest change.
	Revision int64 `json:"revision"`
	Changed  int64 `json:"changed"`

	// Oldest is the revision after which a watch can resume in the log exactly, and since
	// which the state is known at every revision.
	Oldest int64 `json:"oldest"`
	// OldestTime is when the oldest event of the log arrived.
	OldestTime *time.Time `json:"oldestTime,omitempty"`
	// Events are in the log, and take LogBytes, an estimate.
	Events   int   `json:"events"`
	LogBytes int64 `json:"logBytes"`
	// FormBytes are those of the encodings that are kept for clients.
	FormBytes int64 `json:"formBytes"`
	// Tombstones are deletions that are remembered although the log has evicted them.
	Tombstones int `json:"tombstones"`

	// Applied and Evicted count events since the start.
	Applied int64 `json:"applied"`
	Evicted int64 `json:"evicted"`

	// Watchers are open, and share Buckets: logs of what is of interest to them.
	Watchers int     `json:"watchers"`
	Buckets  int     `json:"buckets"`
	Resumes  Resumes `json:"resumes"`
	// Expired counts watches and reads that were refused because their history was gone.
	Expired int64 `json:"expired"`
}

// Resumes counts watches since the start by how they began.
type Resumes struct {
	Initial   int64 `json:"initial"`   // with the state
	Exact     int64 `json:"exact"`     // at a revision in the log
	Coalesced int64 `json:"coalesced"` // before the log, with the latest change of each object
	Continued int64 `json:"continued"` // those that were slower than the log, and went on with coalesced history
}

// ListsSaved is how many lists clients would have needed of a server without a log: each watch
// that began without the state continued what its client had.
func (r Resumes) ListsSaved() int64 { return r.Exact + r.Coalesced + r.Continued }

// Watchers are the open watches of a server, or the first of them.
type Watchers struct {
	Now time.Time `json:"now"`
	// Total is how many are open, Matching how many of them were asked for.
	Total    int `json:"total"`
	Matching int `json:"matching"`
	// Items are sorted as asked for; at most as many as asked for.
	Items []Watcher `json:"items"`
}

// Watcher is one open watch.
type Watcher struct {
	// ID counts the watches since the start.
	ID   uint64 `json:"id"`
	User string `json:"user"`
	// Agent is the User-Agent of the client, Remote its address and port: watches of one
	// connection have the same.
	Agent  string `json:"agent,omitempty"`
	Remote string `json:"remote"`
	// Protocol is HTTP/2.0, HTTP/1.1 or WebSocket, and Format the media type of the events.
	Protocol string `json:"protocol"`
	Format   string `json:"format"`

	Group     string `json:"group"`
	Version   string `json:"version"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	// LabelSelector and FieldSelector are as the client sent them.
	LabelSelector string `json:"labelSelector,omitempty"`
	FieldSelector string `json:"fieldSelector,omitempty"`

	// Demonstration is what the watch's client calls itself to the page; see
	// DemonstrationParameter.
	Demonstration string `json:"demonstration,omitempty"`

	Opened   time.Time `json:"opened"`
	Deadline time.Time `json:"deadline"`
	// Requested is the resourceVersion that the client named; 0: none.
	Requested int64 `json:"requested"`
	// Began says how the watch began: initial, with the state; exact, or coalesced: it
	// resumed. It is empty while State is busy.
	Began string `json:"began,omitempty"`
	// CoalescedThrough is the revision up to which the watch has had coalesced history; 0: it
	// has had every change.
	CoalescedThrough int64 `json:"coalescedThrough,omitempty"`

	// State is idle (it has sent everything), queued (it waits for its turn among the watches
	// of its connection), writing (it writes, or waits for the client to read), or busy: it is
	// being served at this moment, and the following fields are not known.
	State string `json:"state"`
	// Phase is what it reads from: the log, the initial state or coalesced history.
	Phase string `json:"phase,omitempty"`
	// Position is the revision up to which the watch has read.
	Position int64 `json:"position"`
	// LagEvents is how many changes that may concern it are in the log and have not been
	// read; LagMillis is for how long the first of them has been there.
	LagEvents int   `json:"lagEvents"`
	LagMillis int64 `json:"lagMillis"`
	// Events and Bytes were sent; bytes before compression and encryption.
	Events int64 `json:"events"`
	Bytes  int64 `json:"bytes"`
}

// Extent says which part of the past an answer has.
type Extent struct {
	Now time.Time `json:"now"`
	// Oldest is the revision since which the log has every change; what was before it, even
	// if it was asked for, is not known.
	Oldest int64 `json:"oldest"`
	// Revision is the one that the cache has reached.
	Revision int64 `json:"revision"`
	// Truncated says that there is more of what was wanted before the first item.
	Truncated bool `json:"truncated,omitempty"`
}

// Events are the changes of a collection that the log has.
type Events struct {
	Extent
	Items []Event `json:"items"`
}

// Event is one change of one object.
type Event struct {
	Revision int64 `json:"revision"`
	// Time is when the server learnt of it.
	Time *time.Time `json:"time,omitempty"`
	// Type is ADDED, MODIFIED or DELETED: what the change did to the object, or, where there
	// are selectors, to the selection.
	Type      string `json:"type"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Before is the resourceVersion of the state before, 0 if there was none.
	Before int64 `json:"before,omitempty"`
}

// History is what the log has of one object.
type History struct {
	Extent
	Items []Version `json:"items"`
}

// Version is one version of an object.
type Version struct {
	Revision int64 `json:"revision"`
	// Time is when the server learnt of it.
	Time *time.Time `json:"time,omitempty"`
	// Type is ADDED, MODIFIED or DELETED; empty for a version from before Oldest, which is
	// known because a later change replaced it, or because there was none.
	Type string `json:"type,omitempty"`
	// Object is the object at this version, in the version of the API that was asked for.
	// It is left out of a deletion.
	Object json.RawMessage `json:"object,omitempty"`
}

// WindowEvent is the event of a window that follows those of its objects.
type WindowEvent struct {
	Type   string      `json:"type"` // WindowEventType
	Object WindowState `json:"object"`
}

// WindowState is what a window shows, after the events before it.
type WindowState struct {
	// Offset is the number of the first object, and Total how many the list has.
	Offset int `json:"offset"`
	Total  int `json:"total"`
	// ResourceVersion is that through which changes have been looked at.
	ResourceVersion string `json:"resourceVersion"`
	// Order names the objects of the window in their order, as NAMESPACE/NAME, or as NAME if they
	// have no namespace. null: as before.
	Order []string `json:"order"`
}
