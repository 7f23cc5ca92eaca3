// Package discovery asks a Mapper about an API server.
package discovery
