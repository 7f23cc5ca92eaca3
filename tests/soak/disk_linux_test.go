package soak

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/levelwire/levelwire/tests/workload"
)

const (
	diskBytes = 1 << 30
	// The requests of ioctl_fsfreeze, which package unix lacks.
	freezeFilesystem = 0xC0045877
	thawFilesystem   = 0xC0045878
)

// disk is a file system in an image. Each server's process has it on a loop device of its
// own, which it mounts in a mount namespace of its own: whatever ends that process ends
// both. A device that stays would keep blocks that were read from it, though ext4 writes
// its journal past them: the next repair could replay an old journal.
type disk struct {
	image  string
	device string // the last one; "" at first
}

// newDisk returns an error where the system, or the user, cannot do this.
func newDisk(t *testing.T) (*disk, error) {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil, errors.New("needs root")
	}
	d := &disk{image: filepath.Join(t.TempDir(), "disk.img")}
	if err := errors.Join(os.WriteFile(d.image, nil, 0o600), os.Truncate(d.image, diskBytes)); err != nil {
		return nil, err
	}
	if _, err := run("mkfs.ext4", "-q", "-F", d.image); err != nil {
		return nil, err
	}
	if err := d.attach(); err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = d.detach() })
	probe := exec.Command("mount", d.device, t.TempDir())
	d.isolate(probe)
	if out, err := probe.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mount: %w: %s", err, out)
	}
	return d, d.detach()
}

// attach gives the image a device.
func (d *disk) attach() error {
	device, err := run("losetup", "--find", "--show", d.image)
	d.device = strings.TrimSpace(device)
	return err
}

// detach removes the device, or has it go with the mount that uses it.
func (d *disk) detach() error {
	if !d.attached() {
		return nil
	}
	_, err := run("losetup", "--detach", d.device)
	return err
}

// attached reports whether the device is the image's, and not another's.
func (d *disk) attached() bool {
	device, err := os.Open(d.device)
	if err != nil {
		return false
	}
	defer func() { _ = device.Close() }()
	status, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
	var image unix.Stat_t
	return err == nil && unix.Stat(d.image, &image) == nil && status.Inode == image.Ino
}

func run(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return string(out), nil
}

// isolate gives a process mounts of its own.
func (d *disk) isolate(cmd *exec.Cmd) {
	if d != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
}

// prepare waits until the last device is gone, and repairs the file system on another one,
// as a machine does when it starts.
func (d *disk) prepare(t *testing.T) {
	t.Helper()
	workload.Await(t, func() string { return d.device + " is still mounted" }, func() bool { return !d.attached() })
	if err := d.attach(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if out, err := exec.Command("e2fsck", "-p", d.device).CombinedOutput(); errors.As(err, &exit) && exit.ExitCode() > 1 || err != nil && exit == nil {
		t.Fatalf("e2fsck: %v: %s", err, out)
	}
}

// mountDisk is for the server's process.
func mountDisk(device, dir string) error {
	return unix.Mount(device, dir, "ext4", 0, "")
}

// failDisk makes the device refuse all writes, and so the file system read-only, for as
// long as the device exists. It is for the server's process. The files are read before, so that the kernel has their
// pages: a page of a mapped file that cannot be read ends a process at once.
//
// To remount with the option "abort" would be no such failure: for as long as the kernel
// has not marked the file system, about 20 ms, fsync may succeed though the disk
// does not get the journal's transaction (Linux 6.18; a program that does nothing but
// write and sync has lost its last write in 3 of 85 attempts).
func failDisk(device, dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || entry.Name() == filler {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		_, err = io.Copy(io.Discard, file)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // etcd removes files
		return err
	}
	return shorten(device)
}

// shorten leaves the first sector of a device.
func shorten(device string) error {
	file, err := os.Open(device)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	status, err := unix.IoctlLoopGetStatus64(int(file.Fd()))
	if err != nil {
		return fmt.Errorf("%s: %w", device, err)
	}
	status.Sizelimit = 512
	return unix.IoctlLoopSetStatus64(int(file.Fd()), status)
}

// thawDisk does nothing if it is not frozen.
func thawDisk(dir string) { _ = ioctl(dir, thawFilesystem) }

func ioctl(dir string, request uint) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return unix.IoctlSetInt(int(d.Fd()), request, 0)
}

// stall makes all writes to the file system of dir wait.
func stall(t *testing.T, dir string, d time.Duration) {
	t.Helper()
	if err := ioctl(dir, freezeFilesystem); err != nil {
		t.Errorf("freeze the disk: %v", err)
		return
	}
	defer thawDisk(dir)
	workload.Wait(t.Context(), d)
}

// filler is the file that fills a disk.
const filler = "filler"

// fill leaves so many bytes of the disk of dir, until empty. It does nothing if there are
// fewer.
func fill(t *testing.T, dir string, left int64) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(dir, filler), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = file.Close() }()
	var stat unix.Statfs_t
	info, err := file.Stat()
	if err = errors.Join(err, unix.Statfs(dir, &stat)); err != nil {
		t.Error(err)
		return
	}
	more := int64(stat.Bavail)*stat.Bsize - left //nolint:gosec // It is small.
	if more <= 0 {
		return
	}
	// What the server writes meanwhile may take the room.
	if err := unix.Fallocate(int(file.Fd()), 0, info.Size(), more); err != nil && !errors.Is(err, unix.ENOSPC) {
		t.Errorf("fill the disk: %v", err)
	}
}

// empty gives the room back.
func empty(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, filler)); err != nil {
		t.Error(err)
	}
}
