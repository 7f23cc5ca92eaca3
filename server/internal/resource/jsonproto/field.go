package jsonproto

import (
	"encoding/binary"
	"math/bits"
)

// AppendField appends a length-delimited field with its content.
func AppendField(dst []byte, number int, content []byte) []byte {
	return append(AppendFieldHead(dst, number, len(content)), content...)
}

// AppendFieldHead appends tag and length. Field numbers are below 16, so the
// tag is one byte.
func AppendFieldHead(dst []byte, number, length int) []byte {
	dst = append(dst, byte(number<<3|2))
	return binary.AppendUvarint(dst, uint64(length))
}

// FieldSize is how long a length-delimited field with one byte of tag is.
func FieldSize(content int) int {
	return 1 + (bits.Len64(uint64(content)|1)+6)/7 + content
}
