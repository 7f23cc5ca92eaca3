// Package rbac authorizes requests by roles and their bindings, as Kubernetes
// documents it (https://kubernetes.io/docs/reference/access-authn-authz/rbac/).
//
// Reading order: authorizer.go answers, index.go keeps the answers' index in step
// with the caches of the four kinds, policy.go is that index, ruleset.go are the
// rules of a role, compiled, resources.go is the keys by which they are found, and compiled.go
// bounds what all of that takes.
package rbac
