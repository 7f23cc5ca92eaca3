// Package admission is the plugins that users of a cluster expect to have a say
// in what is written: defaults for pods and claims, and limits. Each is a
// registry.Admission and bears the name that Kubernetes gives it.
//
// plugins.go knows the names and chooses, the other files are a plugin each.
package admission
