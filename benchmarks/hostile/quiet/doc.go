// Package quiet is four clients of an API server that do little, and measure how long it
// takes: whatever others do to the server, these must not notice.
//
// None of them tries again: an answer that is no success is an error, as is a watch that
// ends before its time.
package quiet
