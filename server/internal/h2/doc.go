// Package h2 is an HTTP/2 server (RFC 9113) for connections that carry many
// long answers: lists of hundreds of megabytes, and watches that sleep until
// one event wakes all of them. It is plugged in behind net/http's seam for it,
// [net/http.Server.TLSNextProto]; handlers are ordinary ones, and HTTP/1.1 stays
// net/http's.
//
// # Why not net/http's
//
// There every frame of every stream is handed to the connection's one serving
// goroutine, which hands it to another that writes, and tells the handler when
// it is done: three changes of goroutine for each event of each watch. Frames
// are written one by one, so that a frame of 16 kB and its head of 9 bytes take
// two TLS records, and each record a system call. Here whoever has something to
// say appends it to the connection's buffer, and the first of them writes what
// all have said, in one go; a hundred watches on one connection that one event
// wakes cost one system call.
//
// # How it works
//
// A connection has one goroutine that reads, and one for each request under way.
// Nobody is there to write: see output.go. Everything that both sides share is
// guarded by one mutex for each connection, which is never held during I/O or
// while a handler runs. Lock order: a connection's mutex comes before its
// server's, and both before those of a [net.Conn] made by [NewListener], which
// comes before that of one made by [LimitWrites].
//
// Everything a peer can make the server hold is bounded: streams, bytes of
// headers, bytes of bodies (the receive windows), bytes that wait to be written,
// acknowledgements, and how long a peer may take to read.
//
// Server push, priorities and extended CONNECT are not implemented. The first
// is gone from browsers, the second from RFC 9113, and nobody here asks for the third.
package h2
