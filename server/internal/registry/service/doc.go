// Package service gives Services their cluster IPs and node ports, and repairs
// the claims to them.
package service
