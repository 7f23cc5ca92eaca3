// Package ownership decides which objects belong to an owner with a selector:
// orphans that match are adopted, own objects that no longer match are
// released. The owner is recorded in the object's controller reference.
package ownership
