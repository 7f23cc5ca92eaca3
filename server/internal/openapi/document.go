package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"

	"github.com/levelwire/levelwire/server/internal/gzipblock"
)

// Document is an encoded description. It is held compressed, an eighth of its
// size, which is how nearly all clients want it. Immutable.
type Document struct {
	// Hash of the content, of JSON for both encodings: what a client may keep
	// the document under. Upper-case hexadecimal.
	Hash string
	// Size of the content in bytes, uncompressed.
	Size int
	// Gzip is the compressed content. It must not be modified.
	Gzip []byte
	// Made is when the content was found to be as it is, to the second.
	Made time.Time
}

// NewDocument returns a document of the given JSON.
func NewDocument(content []byte) (*Document, error) {
	sum := sha256.Sum256(content)
	return compressed(content, hashOf(sum), now())
}

func hashOf(sum [sha256.Size]byte) string { return strings.ToUpper(hex.EncodeToString(sum[:])) }

func now() time.Time { return time.Now().Truncate(time.Second) }

func compressed(content []byte, hash string, made time.Time) (*Document, error) {
	var out bytes.Buffer
	z := gzipblock.NewWriter(&out)
	defer z.Release()
	if _, err := z.Write(content); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return &Document{Hash: hash, Size: len(content), Gzip: bytes.Clone(out.Bytes()), Made: made}, nil
}

// Content returns the uncompressed content, made anew for each caller.
func (d *Document) Content() ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(d.Gzip))
	if err != nil {
		return nil, err
	}
	content := make([]byte, d.Size)
	_, err = io.ReadFull(z, content)
	return content, err
}

// Reader returns a reader of the uncompressed content, which is made as it is read: all of it
// takes milliseconds. It seeks by reading from the beginning, so clients must not
// decide where. It calls yield, in which others may run, before it uncompresses the next
// pieceBytes at most.
func (d *Document) Reader(yield func()) io.ReadSeeker { return &contentReader{of: d, yield: yield} }

// pieceBytes is how much of a document is uncompressed at a time: far less than takes a
// millisecond.
const pieceBytes = 32 << 10

// uncompressors has readers that have read a document to its end. Each has tables and a window
// of 32 kB, which would be garbage after every request.
var uncompressors sync.Pool // of *gzip.Reader

// contentReader is a reader of a document. Close need not be called.
type contentReader struct {
	of     *Document
	yield  func()
	at     int64        // of the next Read
	z      *gzip.Reader // nil before the first
	zAt    int64        // where z is
	failed error
}

// Read implements io.Reader.
func (r *contentReader) Read(p []byte) (int, error) {
	if r.failed != nil {
		return 0, r.failed
	}
	if r.at >= int64(r.of.Size) {
		return 0, io.EOF
	}
	if r.z == nil || r.zAt > r.at {
		if r.failed = r.begin(); r.failed != nil {
			return 0, r.failed
		}
	}
	for r.zAt < r.at {
		r.yield()
		skipped, err := io.CopyN(io.Discard, r.z, min(r.at-r.zAt, pieceBytes))
		if r.zAt += skipped; err != nil {
			return 0, err
		}
	}
	r.yield()
	n, err := r.z.Read(p[:min(len(p), pieceBytes)])
	r.at, r.zAt = r.at+int64(n), r.zAt+int64(n)
	if r.zAt == int64(r.of.Size) {
		uncompressors.Put(r.z)
		r.z = nil
	}
	return n, err
}

// begin has z at the beginning of the document.
func (r *contentReader) begin() error {
	if r.z == nil {
		r.z, _ = uncompressors.Get().(*gzip.Reader)
	}
	r.zAt = 0
	compressed := bytes.NewReader(r.of.Gzip)
	if r.z != nil {
		return r.z.Reset(compressed)
	}
	var err error
	r.z, err = gzip.NewReader(compressed)
	return err
}

// Seek implements io.Seeker.
func (r *contentReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += int64(r.of.Size)
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d of a document", offset)
	}
	r.at = offset
	return offset, nil
}

// V3Protobuf turns a JSON document of version 3 into protobuf, under the same
// hash.
func V3Protobuf(d *Document) (*Document, error) {
	return d.encodedBy(func(content []byte) (proto.Message, error) { return openapi_v3.ParseDocument(content) })
}

// V2Protobuf turns a JSON document of version 2 into protobuf, under the same
// hash.
func V2Protobuf(d *Document) (*Document, error) {
	return d.encodedBy(func(content []byte) (proto.Message, error) { return openapi_v2.ParseDocument(content) })
}

func (d *Document) encodedBy(parse func([]byte) (proto.Message, error)) (*Document, error) {
	content, err := d.Content()
	if err != nil {
		return nil, err
	}
	message, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("turn OpenAPI into protobuf: %w", err)
	}
	if content, err = proto.Marshal(message); err != nil {
		return nil, fmt.Errorf("turn OpenAPI into protobuf: %w", err)
	}
	return compressed(content, d.Hash, d.Made)
}
