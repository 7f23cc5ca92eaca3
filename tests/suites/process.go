package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/levelwire/levelwire/internal/childprocess"
)

// inGroup puts a command into a process group of its own, which ends when its context does.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// runBound runs a command that ends with this process.
func runBound(cmd *exec.Cmd) error { return childprocess.RunTests(cmd) }

// Killed processes end when the kernel comes to it: how often, and for how long, that is awaited.
const (
	betweenLooks = 5 * time.Millisecond
	patience     = 10 * time.Second
)

// endMarked kills every process that has the mark in its environment, and waits until none is left:
// envtest puts servers into process groups of their own, and a test that panics does not stop them.
// Only Linux tells what environment a process has; elsewhere, such servers go on.
func endMarked(mark string) {
	for began := time.Now(); killMarked(mark) && time.Since(began) < patience; {
		time.Sleep(betweenLooks)
	}
}

// killMarked kills the processes that have the mark, and reports whether there were any.
func killMarked(mark string) (any bool) {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, file := range environments {
		environment, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(environment, []byte(mark)) {
			continue // it has ended, or is somebody else's
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
			any = true
		}
	}
	return any
}

// leastRoom is what a suite may need: the sources of what it imports, objects of the compiler in
// the go command's build cache, and a test binary.
const leastRoom = 4 << 30

// enoughRoom says what to do if the disk has too little room for a suite.
func enoughRoom(folder string) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return fmt.Errorf("how much room the disk has: %w", err)
	}
	if free := disk.Bavail * uint64(disk.Bsize); free < leastRoom {
		return fmt.Errorf("the disk of %s has %.1f GiB left, and a suite may need %d: make room, `go clean -cache` for example, or name a folder elsewhere with -work and set GOCACHE", folder, float64(free)/(1<<30), leastRoom>>30)
	}
	return nil
}
