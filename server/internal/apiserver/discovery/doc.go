// Package discovery answers what clients ask about the API itself: which groups,
// versions, resources and subresources there are, plain and aggregated; their
// OpenAPI in both versions and encodings; and the version of the server.
//
// All answers are made from the table of resources, when a client first asks, or before that in
// the background (background.go), and kept for as long as the resources of their group and
// version are the same.
package discovery
