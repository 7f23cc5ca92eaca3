// Package listen has listeners for servers of HTTP/1.1 and HTTP/2: ConnectionLimit
// bounds how many connections are open, LimitWrites how long a write may block, and
// BatchTLS lets several TLS records be written with one system call.
package listen
