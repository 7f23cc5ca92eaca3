// Package registry is the verbs on objects: create, update, patch, apply, delete
// and the subresources, with everything that Kubernetes promises about them. It
// knows no HTTP.
//
// Every write is a [pendingWrite] and takes one way, whatever its verb:
//
//	 create   update   patch   apply   status, scale, binding, ...   delete
//	    |        |       |       |                |                    |
//	    +--------+-------+-------+--------+-------+--------------------+
//	                                      v
//	             read     the current state, from the cache if it has the object
//	               |
//	+----------> decide   the verb: current state -> action, object      create.go, update.go, delete.go
//	|              |
//	|            prepare  metadata, defaults, managedFields              prepare.go, ownership.go
//	|              |
//	|            admit    mutating hooks, validation, validating hooks   admit.go, validate.go
//	|              |
//	|            encode   object -> stored form                          commit.go
//	|              |
//	|  conflict    v
//	+<--------- commit    guarded by the current state's revision        commit.go
//	  (the state   |
//	   that the    v
//	   store has) result  stored form + revision -> cached form          result.go
//
// The store compares the revision of the state that a write was decided on. If
// another write came first it refuses, and answers with the state that it has,
// on which the write is decided again. So there are no locks on objects, and a
// decision on the cache's state, which may be old, needs no read of the store. An
// error, or a decision to write nothing, counts only once the store has confirmed
// the state (pendingWrite.attempt).
//
// Once a write was overtaken, writes of that object take turns, so that none of them
// is overtaken again and again (package contention).
//
// The hooks of admit see the write as a [Request], and are told how it ended by
// Request.Finally. An object changes in one write of the store; what had to be
// claimed for it (an address, a port) is claimed in admit, and given back if the
// write is refused. So nothing half written is ever visible.
//
// registry.go has the entry points, endpoint.go says what a subresource changes,
// read.go is for callers that only look. What can be understood alone is a package
// below: contention, ownwrites, objectmeta, specstatus, reporter, patch, fieldmanager.
package registry
