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
	return compressed(content, strings.ToUpper(hex.EncodeToString(sum[:])), time.Now().Truncate(time.Second))
}

// compressors are kept between documents: one is 800 kB, many documents are
// small.
var compressors = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid: no error
	return z
}}

func compressed(content []byte, hash string, made time.Time) (*Document, error) {
	var out bytes.Buffer
	z := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	z.Reset(&out)
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

// V3Document encodes the description of one group and version as JSON.
func (b *Builder) V3Document(of Group) (*Document, error) {
	described, err := b.V3(of)
	if err != nil {
		return nil, err
	}
	content, err := described.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI of %s: %w", of.Version, err)
	}
	return NewDocument(content)
}

// V2Document encodes the description of everything as JSON.
func (b *Builder) V2Document(groups []Group) (*Document, error) {
	described, err := b.V2(groups)
	if err != nil {
		return nil, err
	}
	content, err := described.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI version 2: %w", err)
	}
	return NewDocument(content)
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
