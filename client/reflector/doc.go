// Package reflector keeps a Store in step with a resource of an API server: it
// lists, then watches, and after every interruption resumes from the last
// resourceVersion.
//
// Start with [New] and [Reflector.Run]. A list happens at the start, when the
// server says that the version to resume from has expired, and when watches from
// there lead nowhere: two that could not be understood, or five that were opened and
// failed at once (see [ListCause]). Otherwise a watch that ends, times out, is cut
// or is refused, for good or with 429, is opened again from the last
// resourceVersion, after a random wait if it did not end in due time (see [Backoff]). The list is a streaming
// one (KEP-3157) where the server offers it, with a deadline for the bookmark
// that closes it, and pages otherwise. Before it lists again, the reflector
// asks a Levelwire server for the difference to what the store holds
// (docs/users/difference.md).
package reflector
