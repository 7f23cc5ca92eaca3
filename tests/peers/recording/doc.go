// Package recording records a rollout, on a Levelwire server and on a server made of the upstream
// libraries, and replays it to client-go's informers, to ours, and to kubectl.
package recording
