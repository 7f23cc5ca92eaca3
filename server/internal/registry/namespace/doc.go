// Package namespace keeps objects out of namespaces that do not exist or are being
// deleted, and knows the namespaces that every cluster has.
package namespace
