// Package write tests the writing verbs of the client against a real server:
// apply, patches, updates with retry; tests only.
package write
