// Package garbage deletes objects whose owners are gone. It watches the metadata
// of everything the server can delete, keeps the graph of owners and dependents, and
// carries out the two deletion policies that need it: foreground (dependents
// go first) and orphan (dependents are let go).
//
// graph.go is the graph; process.go decides what to do about one object and
// never trusts the graph alone: before something is deleted because its owner
// is gone, the API server itself is asked. orphan.go lets dependents go; moment.go, kinds.go and groups.go say when all of
// them are known.
package garbage
