package diskcache

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"time"
)

// Written is a complete file. Its objects stay, its version can move.
type Written struct {
	Path  string
	Bytes int64
	sum   uint32
}

// Advance notes at the end of the file that its objects show a newer version,
// as a bookmark says of a resource that does not change. It costs some forty
// bytes in place of a new file. The caller must be its only writer.
//
// A crash within leaves a note that is incomplete, which readers ignore.
func (f *Written) Advance(version string, at time.Time) (err error) {
	if version == "" || len(version) > maxVersion {
		return fmt.Errorf("cache file %s: the resourceVersion has %d bytes; 1 to %d are possible", f.Path, len(version), maxVersion)
	}
	file, err := os.OpenFile(f.Path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("cache file: %w", err)
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			err = fmt.Errorf("cache file: %w", closed)
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("cache file: %w", err)
	}
	if info.Size() != f.Bytes {
		return fmt.Errorf("cache file %s has %d bytes, not the %d that were written: does another process use the directory?", f.Path, info.Size(), f.Bytes)
	}
	note := binary.LittleEndian.AppendUint32(nil, uint32(len(version)))
	note = binary.LittleEndian.AppendUint64(note, uint64(at.UnixNano()))
	note = append(note, version...)
	sum := crc32.Update(f.sum, checksums, note)
	note = binary.LittleEndian.AppendUint32(note, sum)
	if _, err := file.Write(note); err != nil {
		return fmt.Errorf("cache file: %w", err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("cache file: %w", err)
	}
	f.Bytes, f.sum = f.Bytes+int64(len(note)), sum
	return nil
}
