// Package debugapi has the paths and the JSON of the server's debug API: what its watch caches
// hold, who watches them, and what they remember of objects. The page at /ui and the command
// levelwire use it; docs/users/ui.md describes it for other programs. All paths answer GET.
//
// Times are in RFC 3339 with milliseconds. A time is left out where the server does not know
// it: of changes that were made before it started, for instance.
package debugapi

// Prefix is what all paths begin with.
const Prefix = "/debug/listwatch/"

// The paths of what concerns the whole server. Their user must be allowed to get them, as
// non-resource URLs.
const (
	// LogsPath answers with Logs.
	LogsPath = Prefix + "logs"
	// WatchersPath answers with Watchers. Its parameters are resource and group, which limit
	// it to one resource; limit (default 200, at most 5,000); and sort: lag (the default),
	// bytes or opened.
	WatchersPath = Prefix + "watchers"
)

// What these are followed by is the API path of a collection or of an object, such as
// /debug/listwatch/history/api/v1/namespaces/default/pods/web-0. Their user must be allowed
// what EventsPath and the others say, at that path.
const (
	// EventsPath answers with the Events of a collection, to users who may watch it.
	// Parameters: after (a resourceVersion: only later changes), through (no later ones),
	// limit (the latest so many; default 500, at most 10,000), labelSelector, fieldSelector.
	EventsPath = Prefix + "events"
	// HistoryPath answers with the History of an object, to users who may get and watch it. Of
	// several objects that had the name one after the other, it is that of the latest one.
	// Parameters: limit (the latest so many versions; default 50, at most 1,000, and as many
	// as 16 MiB hold).
	HistoryPath = Prefix + "history"
	// WindowPath answers with a part of a list, in any form that a list has, to users who may
	// list the collection. It takes the parameters of lists, and offset, the number of the
	// first object; limit (default 50, at most 1,000); sortBy: name, namespace, created,
	// changed, label:KEY or field:NAME; descending=true; and moment, a time in RFC 3339, for the state at
	// that time, as far as the log reaches back. Without sortBy the order is that of a
	// list. The answer's remainingItemCount is exact; the headers Levelwire-Total and
	// Levelwire-Offset say of how many objects it is a part, and where it begins.
	//
	// With watch=true, it follows the window, for users who may also watch the collection. The
	// answer is a stream of JSON: the events of a watch, for the objects of the window that are
	// new in it or have changed, and after each group of them a WindowEvent. The objects are
	// rows of tables, or metadata, and never whole.
	// It ends after timeoutSeconds (default and most 300).
	WindowPath = Prefix + "window"
)

// The headers of WindowPath.
const (
	TotalHeader  = "Levelwire-Total"
	OffsetHeader = "Levelwire-Offset"
)

// DemonstrationParameter of a watch names a demonstration: the page sets how fast the answer is
// sent, as if its client read it so fast. The name is the client's choice, and unique.
const DemonstrationParameter = "levelwireDemonstration"

// WindowEventType is the type of a WindowEvent.
const WindowEventType = "WINDOW"
