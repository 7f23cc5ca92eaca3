//go:build !linux

package mapped

// Resident returns 0: this system does not say how much of mapped files is in
// memory.
func Resident() (int64, error) { return 0, nil }

// Drop does nothing on this system.
func Drop(string) (int64, error) { return 0, nil }
