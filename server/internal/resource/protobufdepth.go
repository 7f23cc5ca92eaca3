package resource

import (
	"encoding/binary"
	"fmt"
)

// maxProtobufDepth bounds how deep messages may nest, like the 10,000 levels of
// JSON's decoder. Generated code recurses without a bound, and a goroutine's
// stack that is used up ends the process: three megabytes of JSONSchemaProps in
// each other would do.
const maxProtobufDepth = 10_000

// bytesPerLevel is what a level of nesting takes at least: a tag and a length.
const bytesPerLevel = 2

// checkProtobufDepth refuses a message that nests too deep. It takes whatever
// can be read as a message for one, strings too, because only the type would
// tell; none that means something reads as thousands in each other. A message
// that is too short for that is not looked at.
func checkProtobufDepth(raw []byte) error {
	if len(raw) <= bytesPerLevel*maxProtobufDepth {
		return nil
	}
	// ends are where the open messages end, the innermost last. Each byte is
	// looked at once.
	ends := []int{len(raw)}
	for at := 0; len(ends) > 0; {
		end := ends[len(ends)-1]
		if at >= end {
			ends = ends[:len(ends)-1]
			continue
		}
		next, nested, ok := protobufField(raw[at:end])
		switch {
		case !ok:
			at = end // no message, or a broken one
		case nested > 0:
			if len(ends) == maxProtobufDepth {
				return fmt.Errorf("the message nests deeper than %d levels", maxProtobufDepth)
			}
			at += next
			ends = append(ends, at+nested)
		default:
			at += next
		}
	}
	return nil
}

// protobufField returns how long the field at the front of a message is; of one
// with a length, only how long its head is, and how many bytes are in it.
func protobufField(msg []byte) (size, nested int, ok bool) {
	tag, n := binary.Uvarint(msg)
	if n <= 0 || tag>>3 == 0 {
		return 0, 0, false
	}
	const varint, fixed64, bytes, fixed32 = 0, 1, 2, 5
	switch tag & 7 {
	case varint:
		_, m := binary.Uvarint(msg[n:])
		return n + m, 0, m > 0
	case fixed64:
		return n + 8, 0, len(msg) >= n+8
	case fixed32:
		return n + 4, 0, len(msg) >= n+4
	case bytes:
		length, m := binary.Uvarint(msg[n:])
		if m <= 0 || length > uint64(len(msg)-n-m) {
			return 0, 0, false
		}
		return n + m, int(length), true
	}
	return 0, 0, false
}
