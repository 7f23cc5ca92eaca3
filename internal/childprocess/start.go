package childprocess

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// Start is cmd.Start for a process that ends with this one. It adds to cmd's environment, ExtraFiles
// and SysProcAttr.
func Start(cmd *exec.Cmd) error {
	if err := inheritPipe(cmd); err != nil {
		return err
	}
	return startBound(cmd)
}

// Run starts cmd with Start and waits for its end.
func Run(cmd *exec.Cmd) error {
	if err := Start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// RunTests starts a test binary and waits for its end. On Linux it ends with this process. Nothing in
// it waits for that, as it would after Run: a check for leaked goroutines would find what does.
func RunTests(cmd *exec.Cmd) error {
	if err := startBound(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// parentPipe names, in the environment of a child, the file that ends when its parent
// does.
const parentPipe = "LEVELWIRE_PARENT_PIPE"

// ours is a pipe into which nothing is written. Only this process has the end for writing,
// which the system closes when the process is gone.
var ours = sync.OnceValues(func() (pipe struct{ read, write *os.File }, err error) {
	pipe.read, pipe.write, err = os.Pipe()
	return pipe, err
})

// inheritPipe gives a child the end for reading.
func inheritPipe(cmd *exec.Cmd) error {
	pipe, err := ours()
	if err != nil {
		return fmt.Errorf("the pipe to a child process: %w", err)
	}
	const first = 3 // behind the standard streams
	cmd.Env = append(cmd.Environ(), parentPipe+"="+strconv.Itoa(first+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, pipe.read)
	return nil
}

// A child that imports this package ends with its parent on every system.
func init() {
	number, err := strconv.Atoi(os.Getenv(parentPipe))
	if err != nil {
		return // it was not started by Start
	}
	_ = os.Unsetenv(parentPipe) // a child of this one has another parent
	endWith(os.NewFile(uintptr(number), "the pipe from the parent"))
}

// endWith ends this process when the pipe from its parent does.
func endWith(pipe *os.File) {
	closeOnExec(pipe)
	go func() {
		_, _ = io.Copy(io.Discard, pipe)
		os.Exit(1)
	}()
}
