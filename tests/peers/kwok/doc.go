// Package kwok holds Levelwire's server against KWOK, which plays the kubelets
// of as many nodes as one likes: it registers their leases, answers for their
// status and takes their pods through their lives. It has only tests.
package kwok
