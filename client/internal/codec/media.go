package codec

import (
	"errors"
	"strings"
)

// Encoding is the encoding of a body.
type Encoding int

// The encodings. EncodingUnknown is that of a body which none of them describes.
const (
	EncodingUnknown Encoding = iota
	EncodingJSON
	EncodingProtobuf
)

var errUnknownEncoding = errors.New("the answer is neither JSON nor protobuf: is this the address of an API server?")

// The media types of the encodings.
const (
	JSON     = "application/json"
	Protobuf = "application/vnd.kubernetes.protobuf"
)

// EncodingOf returns the encoding that a Content-Type names. It ignores parameters
// such as charset and stream=watch.
func EncodingOf(contentType string) Encoding {
	media, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case JSON:
		return EncodingJSON
	case Protobuf:
		return EncodingProtobuf
	}
	return EncodingUnknown
}

const (
	asMetadata     = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetadataList = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// AcceptFor returns the Accept header of a request. JSON comes last in each, so
// that a server without protobuf, or without metadata-only answers, still gives an
// answer that the client can use: a whole object decodes into its metadata as
// well.
func AcceptFor(f Form, list, protobuf bool) string {
	if f == FormMetadata {
		as := asMetadata
		if list {
			as = asMetadataList
		}
		accept := JSON + as + "," + JSON
		if protobuf {
			accept = Protobuf + as + "," + accept
		}
		return accept
	}
	if protobuf {
		return Protobuf + "," + JSON
	}
	return JSON
}
