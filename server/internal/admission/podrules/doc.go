// Package podrules is the admission plugins that complete or refuse new pods by what a
// class, a namespace or the cluster's operator says of them. Each file is one plugin; a
// plugin whose function has no error to tell the difference by is a registry.Admission
// itself.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
package podrules
