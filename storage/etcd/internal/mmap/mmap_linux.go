package mmap

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Supported reports whether this system says which files are mapped, and lets
// their pages be dropped.
const Supported = true

// Resident returns how many bytes of mapped files, the program's own included,
// this process has in memory. It costs microseconds.
func Resident() (int64, error) {
	data, err := os.ReadFile("/proc/self/statm") // proc(5): size, resident, shared, in pages
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(data)
	if len(fields) < 3 {
		return 0, fmt.Errorf("/proc/self/statm is %q", data)
	}
	pages, err := strconv.ParseInt(string(fields[2]), 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// Size returns the size of a file's shared mappings in this process, resident
// or not; 0 if the file is not mapped.
func Size(file string) (int64, error) {
	ranges, err := mappings(file)
	var size int64
	for _, r := range ranges {
		size += int64(r.end - r.start)
	}
	return size, err
}

// DropPages removes the pages of a file's shared mappings from this process.
// They stay in the system's page cache as long as it has room, and are mapped
// again when they are read. The caller must make sure that none of the file's
// mappings is replaced while DropPages runs: another mapping at the same address
// would lose its content. DropPages returns the size of the mappings.
func DropPages(file string) (int64, error) {
	ranges, err := mappings(file)
	if err != nil {
		return 0, err
	}
	var size int64
	for _, r := range ranges {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_DONTNEED); errno != 0 {
			return size, fmt.Errorf("madvise: %w", errno)
		}
		size += int64(r.end - r.start)
	}
	return size, nil
}

// span is the address range of a mapping.
type span struct{ start, end uintptr }

// mappings lists a file's shared mappings. Their content is the file's: dropping
// their pages loses nothing.
func mappings(file string) ([]span, error) {
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil, err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer maps.Close()
	var found []span
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		if r, ok, err := parse(lines.Bytes(), file); err != nil {
			return nil, err
		} else if ok {
			found = append(found, r)
		}
	}
	return found, lines.Err()
}

// parse reads a line of /proc/self/maps: "start-end perms offset device inode
// path". ok is false for mappings of other files, and for private ones.
func parse(line []byte, file string) (r span, ok bool, err error) {
	if !bytes.HasSuffix(line, []byte(" "+file)) {
		return span{}, false, nil
	}
	fields := bytes.Fields(line)
	if len(fields) < 6 || len(fields[1]) != 4 || fields[1][3] != 's' || line[bytes.IndexByte(line, '/')-1] != ' ' ||
		string(line[bytes.IndexByte(line, '/'):]) != file {
		return span{}, false, nil
	}
	low, high, _ := bytes.Cut(fields[0], []byte{'-'})
	start, err := strconv.ParseUint(string(low), 16, 64)
	if err != nil {
		return span{}, false, fmt.Errorf("/proc/self/maps has %q: %w", line, err)
	}
	end, err := strconv.ParseUint(string(high), 16, 64)
	if err != nil || end < start {
		return span{}, false, fmt.Errorf("/proc/self/maps has %q", line)
	}
	return span{uintptr(start), uintptr(end)}, true, nil
}
