// Package recording_test records a server and replays the recording to clients: they
// see the same events in the same order, at the same versions, and may not write.
package recording_test
