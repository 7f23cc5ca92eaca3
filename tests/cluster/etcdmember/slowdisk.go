//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// slowDisk delays what makes a write durable, as a disk does that has too much to do. A
// filter of system calls (seccomp) stops each fsync and fdatasync of this process, in etcd's
// log and in its database alike, and hands it to this type, which lets it go on after
// the delay. So etcd is not changed, and what it writes is really on the disk.
type slowDisk struct {
	listener uintptr
	delay    atomic.Int64
}

// The constants and structures of linux/seccomp.h that package unix does not have.
const (
	setModeFilter    = 1
	flagTSync        = 1 << 0 // for all threads
	flagListener     = 1 << 3
	flagTSyncESRCH   = 1 << 4 // goes with the two
	returnNotify     = 0x7fc00000
	returnAllow      = 0x7fff0000
	notifyContinue   = 1 << 0
	ioctlNotifyRecv  = 0xc0502100
	ioctlNotifySend  = 0xc0182101
	offsetOfCallName = 0
)

type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	data  [64]byte
}

type response struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

// newSlowDisk begins to stop the calls. There is no delay yet.
func newSlowDisk() (*slowDisk, error) {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offsetOfCallName},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.SYS_FDATASYNC},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_FSYNC},
		{Code: unix.BPF_RET | unix.BPF_K, K: returnNotify},
		{Code: unix.BPF_RET | unix.BPF_K, K: returnAllow},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread() // the first call is about the thread
	defer runtime.UnlockOSThread()
	// Without it only root may filter.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("no new privileges: %w", err)
	}
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, flagTSync|flagListener|flagTSyncESRCH, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return nil, fmt.Errorf("system calls cannot be filtered: %w", errno)
	}
	d := &slowDisk{listener: listener}
	go d.serve()
	return d, nil
}

func (d *slowDisk) setDelay(delay time.Duration) { d.delay.Store(int64(delay)) }

func (d *slowDisk) serve() {
	for {
		var n notification
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, d.listener, ioctlNotifyRecv, uintptr(unsafe.Pointer(&n)))
		switch errno {
		case 0:
			delay := time.Duration(d.delay.Load())
			time.AfterFunc(delay, func() { d.proceed(n.id) })
		case unix.EINTR, unix.ENOENT: // the thread that called was interrupted
		default:
			fmt.Fprintln(os.Stderr, "etcdmember: the disk is slow for ever:", errno)
			os.Exit(1)
		}
	}
}

func (d *slowDisk) proceed(id uint64) {
	r := response{id: id, flags: notifyContinue}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, d.listener, ioctlNotifySend, uintptr(unsafe.Pointer(&r)))
	if errno != 0 && errno != unix.ENOENT {
		fmt.Fprintln(os.Stderr, "etcdmember: a delayed call does not go on:", errno)
	}
}
