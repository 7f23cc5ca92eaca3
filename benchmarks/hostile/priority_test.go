package main

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// TestEveryThreadGivesWay that exists or is made later. It lowers the priority of the test's process.
func TestEveryThreadGivesWay(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has priorities of threads")
	}
	end := make(chan struct{})
	defer close(end)
	thread := func() {
		started := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(started)
			<-end
		}()
		<-started
	}
	for range 4 {
		thread()
	}
	before, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := giveWay(); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		thread()
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		after, err := unix.Getpriority(unix.PRIO_PROCESS, id)
		if err == unix.ESRCH {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := max(before-10, 1); after != want {
			t.Errorf("thread %d has priority %d, want %d", id, after, want)
		}
	}
}
