// Package herd is thousands of informers as a server sees them: each lists,
// watches, resumes, backs off and lists again in the order and with the waits of
// client-go 0.37's reflector, over a connection of its own, in protobuf, and
// keeps of what it is sent only names and versions. So one process can be a
// cluster's kubelets, and say when the last of them has caught up.
//
// Reading order: herd.go (many), informer.go (one), session.go (one request),
// wire.go (what is read), content.go (what is kept).
package herd
