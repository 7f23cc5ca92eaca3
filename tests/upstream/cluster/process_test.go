package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/internal/testwait"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// shell starts a script as a process, and returns what says which lines it has printed.
func shell(t *testing.T, script string, restarts bool) (p *Process, printed func() []string) {
	t.Helper()
	p, err := startProcess(t.TempDir(), "shell", restarts, "/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p, func() []string {
		log, err := os.ReadFile(p.log)
		if err != nil {
			t.Error(err)
		}
		return strings.Fields(string(log))
	}
}

func awaitLines(t *testing.T, printed func() []string, n int) {
	t.Helper()
	testwait.Stable(t, "another run of the process", func() (any, bool) { lines := printed(); return lines, len(lines) == n })
}

// TestAKilledProcessIsStartedAgain, until it is stopped.
func TestAKilledProcessIsStartedAgain(t *testing.T) {
	p, printed := shell(t, "echo run; exec sleep 3600", false)
	for n := range 3 {
		awaitLines(t, printed, n+1)
		p.Kill()
	}
	awaitLines(t, printed, 4)
	if err := p.failure(); err != nil {
		t.Error(err)
	}
	p.stop()
	if kills, exits := p.Runs(); kills != 3 || len(exits) > 0 {
		t.Errorf("it was killed %d times, and has ended by itself: %v", kills, exits)
	}
	if lines := printed(); len(lines) != 4 {
		t.Errorf("it ran after it was stopped: %q", lines)
	}
}

// TestAProcessThatEndsByItselfHasFailed, unless it is one that may.
func TestAProcessThatEndsByItselfHasFailed(t *testing.T) {
	for script, want := range map[string]string{"echo why; exit 3": "exit status 3", "echo why": "without being asked to"} {
		p, _ := shell(t, script, false)
		<-p.ended
		if err := p.failure(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "shell.log:\nwhy") {
			t.Errorf("%s: it has failed with %v", script, err)
		}
	}

	p, printed := shell(t, "test -e again && echo run && exec sleep 3600; touch again; exit 3", true)
	awaitLines(t, printed, 1)
	if err := p.failure(); err != nil {
		t.Error(err)
	}
	if _, exits := p.Runs(); len(exits) != 1 || exits[0].Error() != "exit status 3" {
		t.Errorf("it has ended by itself: %v", exits)
	}
}

// TestAProcessThatCannotRunHasFailed, also if it is one that may end by itself.
func TestAProcessThatCannotRunHasFailed(t *testing.T) {
	p, printed := shell(t, "echo run; exit 3", true)
	<-p.ended
	if lines := printed(); len(lines) != mostEarly || p.failure() == nil {
		t.Errorf("it ran %d times, and has failed with %v", len(lines), p.failure())
	}
}

func TestAProgramThatIsMissingIsNamed(t *testing.T) {
	if _, err := startProcess(t.TempDir(), "shell", true, filepath.Join(t.TempDir(), "missing")); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("it was started: %v", err)
	}
}
