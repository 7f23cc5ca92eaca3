package childprocess

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// role, in the environment, makes this test binary something else.
const role = "LEVELWIRE_CHILDPROCESS_ROLE"

func TestMain(m *testing.M) {
	if as := os.Getenv(role); as != "" {
		fmt.Fprintln(os.Stderr, play(as))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// play returns why a role has ended.
func play(as string) error {
	switch as {
	case "child":
		return linger()
	case "parent of a child":
		return parent(Start, self("child"))
	case "parent of a child with a pipe alone":
		return parent(func(cmd *exec.Cmd) error {
			if err := inheritPipe(cmd); err != nil {
				return err
			}
			return cmd.Start()
		}, self("child"))
	case "parent of another program":
		return parent(Start, exec.Command("sh", "-c", "echo ready; exec sleep 3600"))
	case "parent of a child with files of its own":
		read, _, err := os.Pipe()
		if err != nil {
			return err
		}
		cmd := self("child")
		cmd.ExtraFiles = []*os.File{read}
		return parent(Start, cmd)
	case "parent of a parent":
		return parent(Start, self("parent of a child"))
	}
	return fmt.Errorf("no role is %q", as)
}

func self(as string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"="+as)
	return cmd
}

func linger() error {
	fmt.Println("ready")
	select {}
}

// parent starts a child with this process's output, and lives until it is killed.
func parent(start func(*exec.Cmd) error, child *exec.Cmd) error {
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := start(child); err != nil {
		return err
	}
	select {}
}

// TestChildrenEndWithTheirParent: the parent is killed, and its child ends. The test sees that by
// the end of a pipe that only parent and child have for writing.
func TestChildrenEndWithTheirParent(t *testing.T) {
	for _, as := range []string{
		"parent of a child", "parent of a child with a pipe alone", "parent of another program",
		"parent of a child with files of its own", "parent of a parent",
	} {
		t.Run(as, func(t *testing.T) {
			if as == "parent of another program" && runtime.GOOS != "linux" {
				t.Skip("only Linux ends programs that do not know of their parent")
			}
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			cmd := self(as)
			cmd.Stdout = write
			if err := Start(cmd); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			write.Close()
			lines := bufio.NewReader(read)
			if line, err := lines.ReadString('\n'); err != nil || line != "ready\n" {
				t.Fatalf("the child said %q, %v", line, err)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
				t.Errorf("at its end, the child said %q, %v", rest, err)
			}
		})
	}
}

// TestThreadsEnd: a child outlives the thread of the goroutine that has called Start.
func TestThreadsEnd(t *testing.T) {
	cmd := self("child")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var caller sync.WaitGroup
	caller.Go(func() {
		runtime.LockOSThread() // and does not unlock: the thread ends with the goroutine
		err = Start(cmd)
	})
	caller.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("the child ended with %v, and not by SIGTERM", err)
	}
}

// TestRun waits for the end of a process, and says how it was. One that cannot be started is an
// error.
func TestRun(t *testing.T) {
	if err := Run(exec.Command("sh", "-c", "exit 0")); err != nil {
		t.Error(err)
	}
	if err := Run(exec.Command("sh", "-c", "exit 3")); err == nil || err.Error() != "exit status 3" {
		t.Error(err)
	}
	if err := Run(exec.Command(t.TempDir() + "/absent")); err == nil {
		t.Error("a program that does not exist was started")
	}
}

// TestTestsLeakNothing runs this test binary, whose TestMain looks for leaked goroutines.
func TestTestsLeakNothing(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := RunTests(cmd); err != nil {
		t.Errorf("%v: %s", err, said.String())
	}
}
