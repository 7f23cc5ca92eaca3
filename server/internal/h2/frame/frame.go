// Package frame writes HTTP/2 frames and reads their headers (RFC 9113).
package frame

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

const (
	// Preface is what a client sends first (RFC 9113 section 3.4).
	Preface = http2.ClientPreface
	// HeaderSize is the length of a frame's header.
	HeaderSize = 9
	// DefaultSize is the largest frame until SETTINGS say otherwise (RFC 9113
	// section 6.5.2).
	DefaultSize = 16 << 10
	// DefaultWindow is the flow-control window until SETTINGS say otherwise.
	DefaultWindow = 64<<10 - 1
	// MaxWindow is the largest window.
	MaxWindow = 1<<31 - 1
	// MaxStreamID is the last stream of a connection.
	MaxStreamID = 1<<31 - 1
)

// Header precedes each frame (RFC 9113 section 4.1).
type Header struct {
	Length uint32
	Type   http2.FrameType
	Flags  http2.Flags
	Stream uint32
}

// ParseHeader reads the header from its HeaderSize bytes.
func ParseHeader(b []byte) Header {
	return Header{
		Length: uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]),
		Type:   http2.FrameType(b[3]),
		Flags:  http2.Flags(b[4]),
		Stream: binary.BigEndian.Uint32(b[5:]) & MaxStreamID,
	}
}

// Has reports whether a flag is set.
func (h Header) Has(flag http2.Flags) bool { return h.Flags&flag != 0 }

// AppendHeader appends the header of a frame whose payload has that length.
func AppendHeader(b []byte, length int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	return append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags),
		byte(stream>>24), byte(stream>>16), byte(stream>>8), byte(stream))
}

// AppendReset appends a RST_STREAM frame.
func AppendReset(b []byte, stream uint32, code http2.ErrCode) []byte {
	b = AppendHeader(b, 4, http2.FrameRSTStream, 0, stream)
	return binary.BigEndian.AppendUint32(b, uint32(code))
}

// AppendWindowUpdate appends a WINDOW_UPDATE frame, for the connection if stream is
// 0.
func AppendWindowUpdate(b []byte, stream uint32, increment int64) []byte {
	b = AppendHeader(b, 4, http2.FrameWindowUpdate, 0, stream)
	return binary.BigEndian.AppendUint32(b, uint32(increment))
}

// AppendGoAway appends a GOAWAY frame.
func AppendGoAway(b []byte, last uint32, code http2.ErrCode, reason string) []byte {
	b = AppendHeader(b, 8+len(reason), http2.FrameGoAway, 0, 0)
	b = binary.BigEndian.AppendUint32(b, last)
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	return append(b, reason...)
}

// AppendSettings appends a SETTINGS frame.
func AppendSettings(b []byte, settings ...http2.Setting) []byte {
	b = AppendHeader(b, 6*len(settings), http2.FrameSettings, 0, 0)
	for _, s := range settings {
		b = binary.BigEndian.AppendUint16(b, uint16(s.ID))
		b = binary.BigEndian.AppendUint32(b, s.Val)
	}
	return b
}
