package watchcache

import "github.com/levelwire/levelwire/server/internal/watchcache/state"

// Callers of the cache need its objects, snapshots and selections in nearly every
// line; the aliases spare them a second import.
type (
	// Object is state.Object.
	Object = state.Object
	// FormID is state.FormID.
	FormID = state.FormID
	// Snapshot is state.Snapshot.
	Snapshot = state.Snapshot
	// Run is state.Run.
	Run = state.Run
	// Block is state.Block.
	Block = state.Block
	// Selection is state.Selection.
	Selection = state.Selection
	// Namespaces is state.Namespaces.
	Namespaces = state.Namespaces
	// UnknownFieldError is state.UnknownFieldError.
	UnknownFieldError = state.UnknownFieldError
)

var (
	// NewObject is state.NewObject.
	NewObject = state.NewObject
	// NewUnversioned is state.NewUnversioned.
	NewUnversioned = state.NewUnversioned
	// NewForm is state.NewForm.
	NewForm = state.NewForm
	// NewNamespaces is state.NewNamespaces.
	NewNamespaces = state.NewNamespaces
	// AllNamespaces is state.AllNamespaces.
	AllNamespaces = state.AllNamespaces
	// NewSelection is state.NewSelection.
	NewSelection = state.NewSelection
)
