//go:build !linux

package mmap

// Supported reports whether this system says which files are mapped, and lets
// their pages be dropped.
const Supported = false

// Resident returns 0: this system does not say how much of mapped files is in
// memory.
func Resident() (int64, error) { return 0, nil }

// Size returns 0: this system does not say what is mapped.
func Size(string) (int64, error) { return 0, nil }

// DropPages does nothing on this system.
func DropPages(string) (int64, error) { return 0, nil }
