package resource

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// NeededLabel is a label of a namespace, with the value "true", that allows its objects a field.
type NeededLabel struct {
	Field   *field.Path
	Label   string
	For     string // what the field asks for
	Missing string // what is said without the label
}

// Strategy is what a kind adds to the write path that all kinds share. Every
// member may be nil. The functions are pure: no I/O, no clock, no retained
// references. They may modify the object they are given to prepare, never the
// old one.
//
// What all kinds share is done by the registry and needs no strategy: names
// and generateName, uid, creationTimestamp, generation, status reset and
// status/spec separation, finalizers, preconditions, label and annotation
// validation.
type Strategy struct {
	// Default fills in absent fields, on every decode of a request body and
	// before validation.
	Default func(obj Object)
	// DefaultTimes follows Default in what clients create or replace: it fills in absent
	// times that say since when something is wanted. now is the time of the write.
	DefaultTimes func(obj Object, now metav1.Time)
	// PrepareForCreate and PrepareForUpdate clear or set fields that clients
	// do not own. A new object has its name, uid and creationTimestamp by
	// then; validation comes after.
	PrepareForCreate func(obj Object)
	PrepareForUpdate func(obj, old Object)
	// RenewTimes follows PrepareForUpdate: it moves such times in an object that has changed.
	RenewTimes func(obj, old Object, now metav1.Time)
	// CompleteNew sets in a new object what depends on what the client and the mutating
	// hooks have set. It is called once, after the hooks and before validation; about an object that is
	// refused for its name, no hook is asked.
	CompleteNew func(obj Object)
	// CompleteSubresource is CompleteNew for a change through another subresource than status and
	// scale, named as in its URL.
	CompleteSubresource func(subresource string, obj Object)
	// CompleteStored sets in a new or replaced object what is different in one that Kubernetes reads
	// again after it has stored it. It is called after all hooks and validation, which do not see it.
	CompleteStored func(obj Object)
	// CompleteStatus is CompleteStored for a write through the status subresource. What it finds in
	// lists may be the old object's, too.
	CompleteStatus func(obj Object)
	// PrepareForStatusUpdate is PrepareForUpdate for the status subresource.
	PrepareForStatusUpdate func(obj, old Object)
	// StatusKeeps is the metadata that a write to the status subresource leaves as it
	// is; the rest of what clients set changes with the status, as in Kubernetes.
	StatusKeeps Metadata
	// Unowned are the fields that writers through an endpoint do not own, by subresource, where
	// these are not just what the endpoint leaves as it is. It changes managedFields only.
	Unowned map[string]*fieldpath.Set
	// ValidateName checks the name and generateName of a new object, or of one that
	// replaces another.
	ValidateName func(obj Object, isNew bool) field.ErrorList
	// ValidateFirst checks a new object before its name and metadata, for kinds whose causes have
	// this order in kube-apiserver.
	ValidateFirst func(obj Object) field.ErrorList
	// NamesBeforeFinalizers: an update is checked like a new object, whose names come first.
	NamesBeforeFinalizers bool
	// MetadataIfValid: the name and metadata of a new object are checked only if nothing else is
	// wrong with it, as in Kubernetes for the few kinds whose own validation leaves them out.
	MetadataIfValid bool
	// ValidateUnchanged checks a change before all else that is checked of it but the rules
	// of metadata, for kinds whose causes have this order in kube-apiserver.
	ValidateUnchanged func(obj, old Object) field.ErrorList
	// Validate checks a new object, ValidateUpdate a change (Validate is run
	// for both; ValidateUpdate adds immutability).
	Validate       func(obj Object) field.ErrorList
	ValidateUpdate func(obj, old Object) field.ErrorList
	// ValidateCreate checks new objects only, for kinds whose changes need not
	// mend what was wrong before.
	ValidateCreate func(obj Object) field.ErrorList
	// ValidateStatus checks a change that came through the status subresource.
	// Without it such changes are not checked beyond their metadata.
	ValidateStatus func(obj, old Object) field.ErrorList
	// ValidateSubresource checks a change that came through another
	// subresource than status and scale, named as in its URL.
	ValidateSubresource func(subresource string, obj, old Object) field.ErrorList
	// NeedsLabel returns what a new object asks for that its namespace has to allow by a label,
	// or a change through the status subresource; nil: nothing. old is nil for a new object.
	NeedsLabel func(obj, old Object) *NeededLabel
	// Warnings are what clients that create or replace the object should be told,
	// though it is stored as they want it. old is nil for a new object. Both are the
	// registry's.
	Warnings func(obj, old Object) []string
	// StatusWarnings are those of an object whose status is written.
	StatusWarnings func(obj Object) []string
	// PrepareForDelete gives an object whose deletion begins the finalizers
	// that the kind's own machinery takes off again, and what its status then
	// says. now is the time of the deletion.
	PrepareForDelete func(obj Object, now metav1.Time)
	// FirstFinalizers returns the finalizers that the first DELETE of an object with these options
	// leaves it with, before PrepareForDelete; nil: those of all kinds (Kubernetes' garbage
	// collection). It is not asked about objects of a collection that is deleted.
	FirstFinalizers func(obj Object, opts *metav1.DeleteOptions) []string
	// Undeletable says why the object of a name cannot be deleted, whether or not it exists; "": it
	// can. It is not asked about objects of a collection that is deleted, as in Kubernetes.
	Undeletable func(name string) string
	// NoGeneration: metadata.generation is not kept for this kind, as in
	// Kubernetes for those without a controller-observed spec.
	NoGeneration bool
	// NoFirstGeneration: changes count, but a new object has no generation, or what the
	// client says, as Kubernetes has it for CSIDrivers.
	NoFirstGeneration bool
	// WholeGenerateName: a generateName is the name, without a suffix.
	WholeGenerateName bool
	// UpsertOnUpdate: a PUT of an object that does not exist creates it.
	UpsertOnUpdate bool
	// UnconditionalUpdate: a PUT without resourceVersion overwrites, or a patch that takes it
	// away. False means it is refused, as Kubernetes does for a few kinds.
	UnconditionalUpdate bool
	// Graceful: DELETE first marks the object and waits (pods). It returns the grace
	// period in seconds that applies to obj when the request asked for
	// requested (nil: it did not say); 0 means remove at once.
	Graceful func(obj Object, requested *int64) int64
	// MarkedByTime: the first deletion sets the deletionTimestamp, and neither a grace period nor
	// another generation, and does no more, whatever keeps the object or does not: another deletion
	// or a write removes it then. So Kubernetes has it for namespaces and definitions.
	MarkedByTime bool
	// PreconditionFailed begins the refusal of a DELETE by its preconditions, for kinds for which
	// Kubernetes looks at these before it comes to what all kinds share; "": the words of all kinds.
	PreconditionFailed string
	// ReturnDeleted: DELETE answers with the object instead of a Status.
	ReturnDeleted bool
	// CreateWithStatus: a POST may bring a status (nodes, which kubelets
	// register with theirs). Otherwise a new object begins with an empty status, or what PrepareForCreate puts there: it runs
	// after the reset.
	CreateWithStatus bool
	// NamesUnnamed: a new object with neither name nor generateName gets a random name.
	NamesUnnamed bool
	// NoDependents: no deletion waits for what becomes of the dependents, whatever it says of them.
	NoDependents bool
	// OrphanByDefault: a DELETE without a propagation policy orphans the
	// dependents.
	OrphanByDefault bool
	// OrphanWarning is what a client is told that deletes so; "": nothing.
	OrphanWarning string
}
