package client

import "strings"

// encoding is how a body is written.
type encoding int

const (
	encodingUnknown encoding = iota
	encodingJSON
	encodingProtobuf
)

// encodingOf reads a Content-Type. Parameters such as charset and stream=watch
// do not matter.
func encodingOf(contentType string) encoding {
	media, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case string(JSON):
		return encodingJSON
	case string(Protobuf):
		return encodingProtobuf
	}
	return encodingUnknown
}

const (
	asMetadata     = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetadataList = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// acceptFor is the Accept header. JSON always comes last, so that a server
// without protobuf, or without metadata-only answers, still gives an answer
// that can be used: a whole object decodes into its metadata as well.
func acceptFor(f form, list, protobuf bool) string {
	if f == formMetadata {
		as := asMetadata
		if list {
			as = asMetadataList
		}
		accept := string(JSON) + as + "," + string(JSON)
		if protobuf {
			accept = string(Protobuf) + as + "," + accept
		}
		return accept
	}
	if protobuf {
		return string(Protobuf) + "," + string(JSON)
	}
	return string(JSON)
}
