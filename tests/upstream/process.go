package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/levelwire/levelwire/internal/childprocess"
)

// process is a server or a component that runs until it is ended.
type process struct {
	name  string
	log   string // a file
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
	err   error         // why; to be read after ended
}

// startProcess starts a program whose output goes to a file in a folder. It ends with this
// process at the latest.
func startProcess(folder, name, program string, args ...string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(folder, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{name: name, log: log.Name(), cmd: exec.CommandContext(context.Background(), program, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = log, log, folder
	if err := childprocess.Start(p.cmd); err != nil {
		return nil, fmt.Errorf("start %s (make test-upstream builds it): %w", name, err)
	}
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// kill ends the process as kill -9 does, and waits for that.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
}

// failure returns an error if the process has ended.
func (p *process) failure() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended: %w; see %s", p.name, p.err, p.log)
	default:
		return nil
	}
}

// freePorts returns ports of the loopback interface on which nothing listens.
func freePorts(n int) (ports []string, err error) {
	for range n {
		listener, listenErr := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if listenErr != nil {
			return nil, listenErr
		}
		// It stays open until all are found, so that each is another one.
		defer func() { err = errors.Join(err, listener.Close()) }()
		ports = append(ports, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	}
	return ports, nil
}
