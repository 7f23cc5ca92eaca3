// Package customresource serves what CustomResourceDefinitions define. It makes
// a resource.Resource of each served version of a definition, and keeps the
// table of resources, the watch caches and the definitions' own status as the
// definitions in the store want them.
//
// A definition has one cache. It holds the stored bytes of its objects, of
// whatever version they were written in. What a version shows of them (pruned,
// defaulted, converted) is made when somebody asks, in generations: a change of
// the schema begins a new one, and neither the cache nor the watches notice.
//
// Reading order: head.go and definition.go (what is known of a definition),
// version.go and compile.go (a version and its schema), resource.go (how it is
// served), shape.go, convert.go and webhook.go (what is made of stored bytes),
// validate.go; then lifecycle.go and what it calls: install.go, names.go,
// status.go, finalize.go.
package customresource
