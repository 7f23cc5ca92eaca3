// Package nodeauthorizer authorizes the requests of kubelets: a node may read what the
// pods that are bound to it refer to, and nothing else of its kind
// (https://kubernetes.io/docs/reference/access-authn-authz/node/).
//
// authorizer.go decides by kind and verb, related.go finds out whether an object is
// related to a node, by the caches and by index.go, which finds the pods of a node: there
// is no graph to be kept, and no decision is older than the caches. volumes.go lists the
// secrets of a volume.
package nodeauthorizer
