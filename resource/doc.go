// Package resource says what a served kind is: its names and scope, its
// codec, the attributes that selectors look at, its table columns and the
// strategy that writes follow. Everything above it (watch cache, registry,
// API server) treats kinds as data; package builtin is the table of those
// that Kubernetes ships.
package resource
