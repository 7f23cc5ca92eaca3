// Package observe has the commands that look at list-watch on any API server: what a watch sends,
// the versions of an object, and what the server is doing.
package observe
