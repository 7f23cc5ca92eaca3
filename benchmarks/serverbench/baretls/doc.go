// Package baretls measures the limits that the machine sets: what it costs a TLS
// server that does nothing else to write the same bytes as the servers under test.
package baretls
