package resource

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// CountElements returns about how many elements of lists, and members that are objects, a body has that may become
// structs: a container of three bytes, {}, takes a kilobyte when it is decoded. A media type that is not
// known is taken for JSON, patches for what they consist of.
func CountElements(mediaType string, body []byte) int {
	switch {
	case strings.HasSuffix(mediaType, "yaml"):
		return yamlElements(body)
	case strings.HasSuffix(mediaType, "cbor"):
		return cborElements(body)
	case mediaType == MediaTypeProtobuf:
		return protobufElements(body)
	}
	return jsonElements(body)
}

// jsonElements counts the objects, and the nulls in lists, each of which is as long as what it is in a list of.
func jsonElements(body []byte) (n int) {
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		case '{', 'n':
			n++
		}
	}
	return n
}

// yamlElements counts lines that begin with dashes, which are elements unless they are text. Braces and commas may be
// text, too, of which a document may have very many: see checkYAMLElements. JSON is YAML, and clients that apply send it.
func yamlElements(body []byte) (n int) {
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) > 0 && text[0] == '{' {
		return jsonElements(text)
	}
	for line := range bytes.Lines(body) {
		for rest := bytes.TrimLeft(line, " "); len(rest) > 0 && rest[0] == '-'; rest = bytes.TrimLeft(rest[1:], " ") {
			n++
		}
	}
	return n
}

// maxYAMLElements is how many elements a document in YAML may have, which is not JSON. Nobody writes as many.
const maxYAMLElements = 30_000

// checkYAMLElements refuses a document in YAML that was made JSON and has too many elements in brackets, which
// CountElements does not see.
func checkYAMLElements(body, text []byte) error {
	if n := jsonElements(text); n > maxYAMLElements && yamlElements(body) < n/2 {
		return &BoundError{fmt.Sprintf("the YAML body has %d elements, the limit is %d: send JSON", n, maxYAMLElements)}
	}
	return nil
}

// cborElements counts maps and nulls.
func cborElements(body []byte) (n int) {
	const null, indefinite = 7<<5 | 22, 31
	for at := 0; at < len(body); {
		head := body[at]
		size, length, ok := cborHead(body[at:])
		if !ok {
			return n
		}
		at += size
		switch major := head & 0xe0; {
		case head == null, major == cborMap:
			n++
		case (major == cborBytes || major == cborBytes|1<<5) && head&0x1f != indefinite: // and text
			if length > uint64(len(body)-at) {
				return n
			}
			at += int(length)
		}
	}
	return n
}

// cborHead returns the size of the head of a value, and its argument.
func cborHead(body []byte) (size int, argument uint64, ok bool) {
	info := body[0] & 0x1f
	if info < 24 || info > 27 {
		return 1, uint64(info), true
	}
	var bytes [8]byte
	size = 1 << (info - 24)
	if len(body) < 1+size {
		return 0, 0, false
	}
	copy(bytes[8-size:], body[1:1+size])
	return 1 + size, binary.BigEndian.Uint64(bytes[:]), true
}

// fieldsOfElement is how many fields with a length there are for an element at least: the entry of a map has three,
// and is none.
const fieldsOfElement = 3

// protobufElements counts fields with a length: a message says of none whether it is a message.
func protobufElements(body []byte) (n int) {
	ends := []int{len(body)}
	for at := min(len(body), len(protobufMagic)); len(ends) > 0; {
		end := ends[len(ends)-1]
		if at >= end {
			ends = ends[:len(ends)-1]
			continue
		}
		next, nested, ok := protobufField(body[at:end])
		if !ok {
			at = end // no message, or a broken one
			continue
		}
		at += next
		if nested > 0 && len(ends) < maxProtobufDepth {
			ends = append(ends, at+nested)
		} else {
			at += nested
		}
		if nested > 0 || body[at-1] == 0 { // which may be a number, too
			n++
		}
	}
	return n / fieldsOfElement
}
