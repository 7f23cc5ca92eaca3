// Package resourcequota is the controller that keeps the status of ResourceQuotas:
// what they limit, and how much of it is used.
//
// The server adds to the used amounts before it writes an object. The controller takes
// off what deletions and other changes set free, which it reads from events (ledger.go),
// and never writes a plain count over what the server has claimed: an object that is
// claimed may not be written yet. Each write is guarded by the quota's version.
//
// A claim can be left behind: the server was killed before it wrote the object. When
// nothing has been claimed of a quota for longer than a write can take, what is used must
// be what exists, and the controller counts anew (recount.go).
package resourcequota
