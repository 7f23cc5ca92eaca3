// Package defaults has the roles and bindings that every cluster has, with the names
// and rules of Kubernetes 1.37
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings),
// and brings those of a store up to date when a server starts.
//
// clusterroles.go, controllerroles.go and bindings.go are the tables, define.go is how
// they are written, and reconcile.go compares them with a store.
package defaults
