// Package reflector keeps a Store in step with a resource of an API server: it
// lists, then watches, and after every interruption resumes where it was.
//
// Start with [New] and [Reflector.Run]. A list happens at the start and when
// the server says that the version to resume from has expired, and at no
// other time: a watch that ends, times out, is cut, refused or told to come
// back later is opened again from the last version. The list is a streaming
// one (KEP-3157) where the server offers it, with a deadline for the bookmark
// that closes it, and pages otherwise. A Levelwire server is asked for the
// difference to what the store holds before that (docs/users/difference.md).
package reflector
