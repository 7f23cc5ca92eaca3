// Package customresource serves the resources that CustomResourceDefinitions
// define. It makes a resource.Resource of each served version of a definition, and
// keeps the table of resources, the watch caches and the definitions' own status
// in step with the definitions in the store.
//
// A definition has one cache. It holds the stored bytes of its objects, in
// whatever version they were written. The form that a version shows (pruned,
// defaulted, converted) is made when a client asks for it, in generations: a
// change of the schema begins a new generation, and neither the cache nor the
// watches start over.
//
// Reading order: crdmeta.go and definition.go (a definition), version.go and
// schema.go (a version and its schema), resource.go (how it is served), prune.go,
// convert.go and webhook.go (from stored bytes to a version), validate.go; then
// lifecycle.go and what it calls: reconcile.go, names.go, status.go, finalize.go.
package customresource
