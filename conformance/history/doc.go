// Package history decides whether recorded watches show what was written. A
// History holds the writes that a server acknowledged and what each of many
// watchers was shown; the checks are pure functions of it, so that they can
// themselves be tested with good and bad histories made by hand.
//
// Read history.go for what is recorded, project.go for what a watcher ought
// to see, and check.go for the properties.
package history
