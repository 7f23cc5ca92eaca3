// Package faultnet makes networks fail on purpose, for tests and
// demonstrations: Proxy is a TCP proxy between a client and a server whose
// connections can be cut, refused, stalled, delayed, slowed down and half
// closed while they are in use; Balancer is one with several servers behind it,
// which can be drained and killed; Pipe is a network in memory, for HTTP within a
// testing/synctest bubble; and ReservePort finds a port for a server that is stopped and
// started again.
package faultnet
