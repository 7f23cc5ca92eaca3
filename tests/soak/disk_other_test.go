//go:build !linux

package soak

import (
	"errors"
	"os/exec"
	"testing"
	"time"
)

// disk is not available on this system.
type disk struct{ device string }

func newDisk(*testing.T) (*disk, error) { return nil, errors.ErrUnsupported }

func (*disk) isolate(*exec.Cmd) {}

func (*disk) prepare(*testing.T) {}

func (*disk) detach() error { return nil }

func mountDisk(string, string) error { return errors.ErrUnsupported }

func failDisk(string, string) error { return errors.ErrUnsupported }

func thawDisk(string) {}

func stall(*testing.T, string, time.Duration) {}

func fill(*testing.T, string, int64) {}

func empty(*testing.T, string) {}
