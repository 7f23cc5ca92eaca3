//go:build !linux

package childprocess

import "os/exec"

// startBound starts cmd. The pipe has to do.
func startBound(cmd *exec.Cmd) error { return cmd.Start() }
