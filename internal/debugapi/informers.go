package debugapi

import "time"

// InformersPath is where programs publish Informers by convention; see package client/debug.
const InformersPath = "/debug/informers"

// Informers are those of a program.
type Informers struct {
	Now time.Time `json:"now"`
	// Program is its name.
	Program string     `json:"program"`
	Items   []Informer `json:"items"`
}

// Informer is one informer at one moment.
type Informer struct {
	Name string `json:"name"`
	// Synced says that the cache has been complete; AgeMillis how old its view is, -1 if there
	// never was a complete one; ResourceVersion up to where it is.
	Synced          bool   `json:"synced"`
	AgeMillis       int64  `json:"ageMillis"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Objects are in the cache, and take about Bytes when they are encoded.
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
	// Indexes are those of the Indexer.
	Indexes []Index `json:"indexes,omitempty"`
	// Queued is the length of the DeltaFIFO: objects with changes that the cache does not show.
	Queued int `json:"queued"`
	// Events reached the handlers' queues.
	Events int64 `json:"events"`
	// Lists, Watches, Resumes and Differences count what was asked of the server.
	Lists       int64 `json:"lists"`
	Watches     int64 `json:"watches"`
	Resumes     int64 `json:"resumes"`
	Differences int64 `json:"differences"`
	// LastError is what the reflector recovered from last, if that is not over.
	LastError string    `json:"lastError,omitempty"`
	Handlers  []Handler `json:"handlers"`
}

// Index is one index of an informer: Values are those under which it has objects.
type Index struct {
	Name   string `json:"name"`
	Values int    `json:"values"`
}

// Handler is one handler of an informer.
type Handler struct {
	Name string `json:"name"`
	// Queued objects have calls that wait; LagMillis is for how long calls have been waiting
	// or running without a pause.
	Queued    int   `json:"queued"`
	LagMillis int64 `json:"lagMillis"`
	// BusyMillis is the time that all calls took.
	BusyMillis int64 `json:"busyMillis"`
	// Delivered calls have returned; Coalesced events were replaced by newer ones.
	Delivered int64 `json:"delivered"`
	Coalesced int64 `json:"coalesced"`
	Panics    int64 `json:"panics"`
	// Error says why the handler is not called any more.
	Error string `json:"error,omitempty"`
}
