// Package scheme says which kind, resource and scope a Go type of the API is.
//
// A [Scheme] knows the types of Kubernetes from a table of package paths and type
// names, so that a program links only the API packages that it imports itself.
// Other types are registered once, by [Register]; after that no caller names their
// kind or resource again: client.For, informer.For, controller.Owns, events and
// owner references look them up by the Go type, and objects are sent with the
// scheme's apiVersion and kind, whatever their TypeMeta says.
//
// Reading order: mapping.go, scheme.go, builtin.go.
package scheme
