// Package service gives Services their cluster IPs and node ports, repairs the
// claims to them, and resolves Services to endpoints for the server's own calls.
package service
