package etcd

import (
	"errors"
	"slices"
	"syscall"
)

// lackErrors say that the system has not enough of something. They pass when other
// programs, or other parts of this one, close files or make room.
var lackErrors = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC, syscall.EDQUOT, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR,
}

// lacksResources reports whether what has failed may succeed when it is tried again.
func lacksResources(err error) bool {
	return slices.ContainsFunc(lackErrors, func(target error) bool { return errors.Is(err, target) })
}
