package childprocess

import (
	"os/exec"
	"runtime"
	"syscall"
)

// startBound starts cmd as a process that the kernel kills when this one ends.
//
// The kernel takes the end of the thread that has started the child for the end of the parent
// (golang/go#27505), and the runtime ends threads as it likes. So the child gets a thread of
// its own here, on which nothing else runs until the child has ended.
func startBound(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err != nil {
			started <- err
			return
		}
		pid := cmd.Process.Pid // read before the caller may wait for the child
		started <- nil
		awaitEnd(pid)
	}()
	return <-started
}

// awaitEnd blocks this thread until a child has ended, and leaves it to others to
// wait for how.
func awaitEnd(pid int) {
	const thatProcess, ended, leave = 1, 4, 0x1000000 // P_PID, WEXITED, WNOWAIT
	for {
		_, _, err := syscall.Syscall6(syscall.SYS_WAITID, thatProcess, uintptr(pid), 0, ended|leave, 0, 0)
		if err != syscall.EINTR {
			return // it has ended, or has even been waited for (ECHILD)
		}
	}
}
