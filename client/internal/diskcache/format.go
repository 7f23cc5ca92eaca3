package diskcache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// The format; docs/users/disk-cache.md explains it.
const (
	magic         = "\x89LWC\r\n\x1a\n"
	formatVersion = 1

	preludeBytes = len(magic) + 2 + 2 + 4 // magic, format, zero, length of the header
	sumBytes     = 4
	lengthBytes  = 4
	endBytes     = lengthBytes + 8 + sumBytes
	maxHeader    = 64 << 10
	maxVersion   = 1 << 10
	// blockTarget ends a block: a Writer or Reader holds one block and one
	// object.
	blockTarget = 256 << 10
)

// checksums are CRC-32C, which processors compute at the speed of memory.
var checksums = crc32.MakeTable(crc32.Castagnoli)

// Identity says what a file is about. A file is used only for the identity it
// was written with, every member equal.
type Identity struct {
	// Server distinguishes servers for the caller; it may be empty.
	Server string
	// Resource and Selection say which objects of the server these are.
	Resource, Selection string
	// Encoding says how the objects are encoded.
	Encoding string
}

// differs names the first member that is not equal; "" if all are.
func (id Identity) differs(from Identity) string {
	for _, member := range []struct{ name, is, want string }{
		{"server", id.Server, from.Server}, {"resource", id.Resource, from.Resource},
		{"selection", id.Selection, from.Selection}, {"encoding", id.Encoding, from.Encoding},
	} {
		if member.is != member.want {
			return fmt.Sprintf("%s is %q, wanted %q", member.name, member.is, member.want)
		}
	}
	return ""
}

// Header is what a file says before its objects.
type Header struct {
	Identity
	// Cluster is the server's identity of itself. It is not compared when a file
	// is opened, as the server may not be reachable then.
	Cluster string
	// Version is the resourceVersion that the objects show. [Reader.Version]
	// may know a newer one, after the last object.
	Version string
	// Saved is when the objects showed it.
	Saved time.Time
}

// Limits bound what is written and read. The zero value of a member is its
// default.
type Limits struct {
	// ObjectBytes is the most that one encoded object may have. Default 64 MiB;
	// at most 1 GiB.
	ObjectBytes int64
	// FileBytes is the most that a file may have. Default 16 GiB.
	FileBytes int64
}

func (l Limits) withDefaults() Limits {
	if l.ObjectBytes <= 0 {
		l.ObjectBytes = 64 << 20
	}
	l.ObjectBytes = min(l.ObjectBytes, 1<<30)
	if l.FileBytes <= 0 {
		l.FileBytes = 16 << 30
	}
	return l
}

// block is the most that the payload of a block may have.
func (l Limits) block() int64 { return blockTarget + lengthBytes + l.ObjectBytes }

// prelude begins a file: with it even a reader of another format can tell
// what it has.
func prelude(header int) []byte {
	out := append(make([]byte, 0, preludeBytes+header+sumBytes), magic...)
	out = binary.LittleEndian.AppendUint16(out, formatVersion)
	out = binary.LittleEndian.AppendUint16(out, 0)
	return binary.LittleEndian.AppendUint32(out, uint32(header))
}

func (h Header) encode() ([]byte, error) {
	var out []byte
	for _, s := range []string{h.Server, h.Resource, h.Selection, h.Encoding, h.Cluster, h.Version} {
		out = binary.AppendUvarint(out, uint64(len(s)))
		out = append(out, s...)
	}
	out = binary.LittleEndian.AppendUint64(out, uint64(h.Saved.UnixNano()))
	switch {
	case len(out) > maxHeader:
		return nil, fmt.Errorf("the header has %d bytes, at most %d are possible", len(out), maxHeader)
	case h.Version == "" || len(h.Version) > maxVersion:
		return nil, fmt.Errorf("the resourceVersion has %d bytes; 1 to %d are possible", len(h.Version), maxVersion)
	}
	return out, nil
}

var errHeader = errors.New("the header does not end where it should")

func decodeHeader(data []byte) (h Header, err error) {
	for _, s := range []*string{&h.Server, &h.Resource, &h.Selection, &h.Encoding, &h.Cluster, &h.Version} {
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return h, errHeader
		}
		*s, data = string(data[n:n+int(size)]), data[n+int(size):]
	}
	if len(data) != 8 {
		return h, errHeader
	}
	if h.Version == "" {
		return h, errors.New("the header names no resourceVersion")
	}
	h.Saved = time.Unix(0, int64(binary.LittleEndian.Uint64(data)))
	return h, nil
}
