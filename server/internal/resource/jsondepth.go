package resource

import (
	"bytes"
	"fmt"
)

// maxJSONDepth is how deep objects and lists may nest in what the decoders of JSON read.
const maxJSONDepth = 10_000

// checkJSONDepth refuses JSON that nobody could read again. An encoder takes what its client sent, and the fields
// that it owns nest deeper than the object itself. Of nearly all objects, only the brackets are counted.
func checkJSONDepth(encoded []byte) error {
	if bytes.Count(encoded, []byte("{"))+bytes.Count(encoded, []byte("[")) <= maxJSONDepth {
		return nil
	}
	depth := 0
	for i := 0; i < len(encoded); i++ {
		switch encoded[i] {
		case '"':
			for i++; i < len(encoded) && encoded[i] != '"'; i++ {
				if encoded[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > maxJSONDepth {
				return fmt.Errorf("with the fields that its managers own, it nests deeper than %d levels", maxJSONDepth)
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}
