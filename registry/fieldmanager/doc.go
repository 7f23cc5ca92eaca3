// Package fieldmanager keeps account of who set which field of an object:
// metadata.managedFields, and the merge that server-side apply is (KEP-555).
//
// A Manager does it for one endpoint, the objects of a resource or one of its
// subresources. Apply merges what a manager wants into an object, with
// structured-merge-diff and apimachinery's managedfields. Update notes what any
// other write changed. Every write pays for that, so for kinds with a Go type it
// is read off the type: paths.go knows once per type which fields there are and
// which lists have keys, diff.go compares two objects along that, and what did
// not change is neither decoded nor encoded. Custom resources, and objects whose
// managedFields a client sent, go the long way, which is the same one with the
// field's own libraries; a test holds the two against each other.
package fieldmanager
