// Package election tests that candidates of client-go's leader election and of
// ours exclude each other. It holds no code.
package election
