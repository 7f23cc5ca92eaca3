// Package filteredlist has the names by which clients and servers agree on lists and watches
// of the namespaces that a user may see (docs/users/filtered-lists.md).
package filteredlist

const (
	// Parameter of a list or a watch of all namespaces asks for what the user may see.
	Parameter = "levelwireVisible"
	// Header of the answer says that the Parameter was obeyed. Its value is All, or stands
	// for the user and its groups: a resourceVersion of an answer is valid only for
	// requests whose answers have the same value.
	Header = "Levelwire-Visible"
)

// The values of Parameter. Others are refused.
const (
	// True asks for the namespaces in which the user has the right to the request: to list,
	// or to list and watch.
	True = "true"
	// Watch is True, and has a list leave out the namespaces that the user may list and not
	// watch, so that a watch can go on from it.
	Watch = "watch"
)

// All is the value of Header if nothing was left out, because the user may see everything by
// other means than roles and bindings.
const All = "all"
