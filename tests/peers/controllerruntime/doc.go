// Package controllerruntime runs a manager of sigs.k8s.io/controller-runtime
// against Levelwire, started as envtest starts a control plane: from the
// stand-ins that `levelwire envtest-assets` makes. With -through-relay, there
// is a relay in between. It has only tests.
package controllerruntime
