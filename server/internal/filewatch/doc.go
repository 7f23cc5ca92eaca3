// Package filewatch reads configured files again while the server runs, when their
// content has changed. A file that cannot be used leaves in force what was read
// before.
package filewatch
