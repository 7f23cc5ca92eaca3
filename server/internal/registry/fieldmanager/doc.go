// Package fieldmanager tracks which manager set which field of an object:
// metadata.managedFields, and the merge that server-side apply is (KEP-555).
//
// A Manager (manager.go) does it for one endpoint, the objects of a resource or
// one of its subresources. Apply merges what a manager wants into an object,
// with structured-merge-diff and apimachinery's managedfields, over the versions
// in which the object is served (versions.go). Update notes what any other write
// changed.
//
// Every write pays for Update, so for kinds with a Go type it is read off the
// type. By the library, a create through the HTTP handler takes 2.6 to 2.8 times
// the processor time; BenchmarkUpdate has both ways side by side, and
// docs/contributors/write-cost.md the creates. typeinfo.go knows, once per
// type, which fields there are and, from the table of package mergestrategy,
// which lists have keys; schema.go makes of that the schema that the library
// wants.
// diff.go compares two objects along their types, with equal.go for what has no
// parts; update.go makes entries of that, and neither decodes nor encodes those
// that the change does not touch. Custom resources, and objects whose
// managedFields a client sent, go the long way, with the library. A test
// and a fuzz test hold the two ways against each other, and another test the
// schema against client-go's.
package fieldmanager
