package measure

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the processor time that a process has used until now, its own and the
// kernel's on its behalf, threads that have ended included. It is exact to the
// scheduler's nanosecond, where /proc/PID/stat counts hundredths of a second.
func CPU(pid int) (time.Duration, error) {
	// The clock of another process, as clock_getcpuclockid(3) makes it: the
	// complement of the id above three bits, of which 2 means "as scheduled".
	clock := ^int32(pid)<<3 | 2
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// Memory is what a process has resident in RAM, in bytes.
type Memory struct {
	// Resident is all of it, Anonymous what is its own, and File what are pages
	// of files: its program, and what it has mapped, as etcd maps its database.
	Resident, Anonymous, File int64
	// Peak is the most that Resident was since the process began, or since
	// ResetPeak.
	Peak int64
}

// MemoryOf reads what a process has resident.
func MemoryOf(pid int) (Memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	m, err := parseStatus(status)
	if err != nil {
		return m, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	return m, nil
}

// Add is the memory of two processes together; their peaks need not have been
// at the same time.
func (m Memory) Add(n Memory) Memory {
	return Memory{m.Resident + n.Resident, m.Anonymous + n.Anonymous, m.File + n.File, m.Peak + n.Peak}
}

// parseStatus reads /proc/PID/status, see proc_pid_status(5).
func parseStatus(status []byte) (m Memory, err error) {
	var shared int64
	want := map[string]*int64{"VmHWM": &m.Peak, "VmRSS": &m.Resident, "RssAnon": &m.Anonymous, "RssFile": &m.File, "RssShmem": &shared}
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		field, ok := want[string(name)]
		if !ok {
			continue
		}
		number, unit, _ := bytes.Cut(bytes.TrimSpace(value), []byte(" "))
		n, err := strconv.ParseInt(string(number), 10, 64)
		if err != nil || string(unit) != "kB" {
			return m, fmt.Errorf("%q is not a number of kB", bytes.TrimSpace(line))
		}
		*field = n << 10
		delete(want, string(name))
	}
	m.Anonymous += shared
	for name := range want {
		return m, fmt.Errorf("its status has no %s", name)
	}
	return m, nil
}

// ResetPeak makes the process's Peak what it has resident now.
func ResetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// OwnCPU is CPU of the calling process.
func OwnCPU() (time.Duration, error) { return CPU(os.Getpid()) }
