// Package reflector tests reflectors against a real server, over a network with
// faults and behind a proxy that buffers; tests only.
package reflector
