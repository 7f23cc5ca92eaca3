// Package attacks is what hostile clients do to an API server, each attack bounded in
// rate: it looks for what a request costs the server out of proportion, and not for how
// many requests a machine can send.
//
// Run carries out all of them at once. An attack is a row of the table in table.go: a
// function that is called so many times a second, and holds what it has opened until the
// server cuts it off or its time is over.
package attacks
