package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/levelwire/levelwire/internal/childprocess"
)

const (
	// restartPause is how long a component stays away that has ended by itself.
	restartPause = time.Second
	// A component that has ended by itself mostEarly times in a row, each time within early, cannot run at all.
	mostEarly = 5
	early     = 10 * time.Second
)

// Process is a server or a component that runs until it is stopped. One that is killed is started again.
type Process struct {
	name    string
	log     string // a file, to which each run appends
	folder  string
	program string
	args    []string
	// restarts says that it is also started again when it ends by itself, as a kubelet does with a static pod.
	restarts bool

	stopping chan struct{} // closed when it is not to run any more
	ended    chan struct{} // closed when it does not
	err      error         // why; to be read after ended

	mu     sync.Mutex
	cmd    *exec.Cmd     // its latest run
	killed bool          // that run is one that Kill ends
	next   chan struct{} // closed when the run has begun that follows the one that Kill ended last; nil: it has ended none
	kills  int           // how often Kill has ended it
	exits  []error       // how runs have ended that nobody killed
}

// Name says which program of the cluster it is.
func (p *Process) Name() string { return p.name }

// Log is the file with its output.
func (p *Process) Log() string { return p.log }

// PID is the system's number of the latest run.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// startProcess starts a program whose output goes to a file in a folder. It ends with this
// process at the latest.
func startProcess(folder, name string, restarts bool, program string, args ...string) (*Process, error) {
	p := &Process{name: name, log: filepath.Join(folder, name+".log"), folder: folder, program: program, args: args, restarts: restarts,
		stopping: make(chan struct{}), ended: make(chan struct{})}
	cmd, err := p.begin()
	if err != nil {
		return nil, fmt.Errorf("start %s (make judge components bin/kubectl build builds it): %w", name, err)
	}
	go func() {
		defer close(p.ended)
		p.err = p.run(cmd)
	}()
	return p, nil
}

// begin starts a run; none, without an error, if the process is to stop.
func (p *Process) begin() (*exec.Cmd, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isStopping() {
		return nil, nil
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(context.Background(), p.program, p.args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, p.folder
	if err := childprocess.Start(cmd); err != nil {
		return nil, err
	}
	if p.killed {
		close(p.next)
	}
	p.cmd, p.killed = cmd, false
	return cmd, nil
}

// run waits for the end of a run, and for that of the next ones, until none follows. It returns how the last one has ended.
func (p *Process) run(cmd *exec.Cmd) error {
	for inARow := 0; ; {
		began := time.Now()
		end := cmd.Wait()
		p.mu.Lock()
		byItself := !p.killed && !p.isStopping()
		if byItself {
			p.exits = append(p.exits, end)
		}
		p.mu.Unlock()
		if inARow++; !byItself || time.Since(began) > early {
			inARow = 0
		}
		if byItself && (!p.restarts || inARow == mostEarly) {
			return end
		}
		if byItself {
			select {
			case <-time.After(restartPause):
			case <-p.stopping:
			}
		}
		var err error
		if cmd, err = p.begin(); cmd == nil {
			return err
		}
	}
}

func (p *Process) isStopping() bool {
	select {
	case <-p.stopping:
		return true
	default:
		return false
	}
}

// Kill ends the latest run as kill -9 does. Another one follows.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed || p.isStopping() {
		return
	}
	p.killed, p.next = true, make(chan struct{})
	p.kills++
	_ = p.cmd.Process.Kill() // it may have ended by itself
}

// awaitNext waits until the run has begun that follows the one that Kill has ended, if it has ended one: the system has
// closed all connections of that one, which may go on to answer for a moment after Kill.
func (p *Process) awaitNext(ctx context.Context) error {
	p.mu.Lock()
	next := p.next
	p.mu.Unlock()
	if next == nil {
		return nil
	}
	select {
	case <-next:
		return nil
	case <-p.ended:
		return p.failure()
	case <-ctx.Done():
		return fmt.Errorf("no run of %s has followed the one that was killed: %w", p.name, ctx.Err())
	}
}

// stop ends the process for good, and waits for that.
func (p *Process) stop() {
	p.mu.Lock()
	if !p.isStopping() {
		close(p.stopping)
	}
	_ = p.cmd.Process.Kill() // it may have ended by itself
	p.mu.Unlock()
	<-p.ended
}

// Runs returns how often the process was killed, and how the runs have ended that nobody killed.
func (p *Process) Runs() (kills int, exits []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kills, append([]error(nil), p.exits...)
}

// errNotAsked is how a process has failed that exits with 0.
var errNotAsked = errors.New("it ended without being asked to")

// failure returns an error, with the end of its log, if the process has ended.
func (p *Process) failure() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended: %w; the end of %s:\n%s", p.name, cmp.Or(p.err, errNotAsked), p.log, logEnd(p.log))
	default:
		return nil
	}
}

// logEnd returns the last lines of a log, as many as fit into an error.
func logEnd(file string) string {
	const most = 4 << 10
	log, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer log.Close()
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(io.NewSectionReader(log, max(0, size-most), most))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(text), ""))
}
