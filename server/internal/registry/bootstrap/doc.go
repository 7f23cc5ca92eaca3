// Package bootstrap creates the objects that every cluster has, when a server
// starts.
package bootstrap
