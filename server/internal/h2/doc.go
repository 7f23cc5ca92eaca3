// Package h2 is an HTTP/2 server (RFC 9113) for connections that carry many
// long answers: lists of hundreds of megabytes, and watches that sleep until
// one event wakes all of them. It is plugged into net/http by
// [net/http.Server.TLSNextProto]; handlers are ordinary ones, and HTTP/1.1 stays
// net/http's.
//
// # Why not net/http's
//
// In net/http's server every frame of every stream is handed to the connection's
// one serving goroutine, which hands it to a second one that writes, and then
// notifies the handler: three changes of goroutine for each event of each watch.
// Frames are written one by one, so that a frame of 16 kB and its header of 9
// bytes take two TLS records, and each record a system call. Here a handler's
// goroutine appends its frames to the connection's buffer, and the first of them
// writes the frames of all. A hundred watches on one connection that one event
// wakes cost one system call.
//
// # How it works
//
// A connection has one goroutine that reads, and one for each request under way, unless
// its handler has detached from its answer (detach.go).
// There is none that writes: see output.go. One mutex for each connection guards
// everything that these goroutines share. It is never held during I/O or while a
// handler runs. Lock order: a connection's mutex before its server's, both before
// that of a [listen.BatchConn], and that before the mutex of a connection made by
// [listen.LimitWrites].
//
// Everything that a client can make the server hold is bounded: streams, bytes of
// headers, bytes of bodies (the receive windows), bytes that wait to be written,
// acknowledgements, and how long a client may take to read. Before a handler has
// authenticated the client of a connection, less is allowed, and the requests of all
// such connections share one budget of memory (unauthenticated.go).
//
// Start reading at Server in server.go, then conn.go (one connection), reader.go
// and frames.go (what arrives), headers.go, fields.go and request.go (a request),
// body.go (its body), stream.go, pace.go and detach.go (its handler), response.go and encode.go (its
// answer), send.go and queue.go (DATA frames within the windows), output.go (the
// connection's buffer), keepalive.go and abuse.go (when a connection ends).
//
// Server push, priorities and extended CONNECT are not implemented: clients of an
// API server use none of them.
package h2
