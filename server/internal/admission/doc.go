// Package admission is the admission plugins that users of a cluster expect:
// defaults for pods and claims, priorities, limits. Each plugin is a
// registry.Admission and has the name that Kubernetes gives it.
//
// plugins.go has the names and the order; every other file is one plugin.
package admission
