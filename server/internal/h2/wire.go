package h2

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/net/http2"
)

const (
	preface       = http2.ClientPreface
	frameHeadSize = 9
	// defaultFrameSize and defaultWindow hold until SETTINGS say otherwise
	// (RFC 9113 section 6.5.2).
	defaultFrameSize = 16 << 10
	defaultWindow    = 64<<10 - 1
	maxWindow        = 1<<31 - 1
	maxStreamID      = 1<<31 - 1
)

// frameHead is what precedes each frame (RFC 9113 section 4.1).
type frameHead struct {
	length uint32
	kind   http2.FrameType
	flags  http2.Flags
	stream uint32
}

func parseFrameHead(b []byte) frameHead {
	return frameHead{
		length: uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]),
		kind:   http2.FrameType(b[3]),
		flags:  http2.Flags(b[4]),
		stream: binary.BigEndian.Uint32(b[5:]) & maxStreamID,
	}
}

func (h frameHead) has(flag http2.Flags) bool { return h.flags&flag != 0 }

func appendFrameHead(b []byte, length int, kind http2.FrameType, flags http2.Flags, stream uint32) []byte {
	return append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags),
		byte(stream>>24), byte(stream>>16), byte(stream>>8), byte(stream))
}

func appendReset(b []byte, stream uint32, code http2.ErrCode) []byte {
	b = appendFrameHead(b, 4, http2.FrameRSTStream, 0, stream)
	return binary.BigEndian.AppendUint32(b, uint32(code))
}

func appendWindowUpdate(b []byte, stream uint32, increment int64) []byte {
	b = appendFrameHead(b, 4, http2.FrameWindowUpdate, 0, stream)
	return binary.BigEndian.AppendUint32(b, uint32(increment))
}

func appendGoAway(b []byte, last uint32, code http2.ErrCode, why string) []byte {
	b = appendFrameHead(b, 8+len(why), http2.FrameGoAway, 0, 0)
	b = binary.BigEndian.AppendUint32(b, last)
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	return append(b, why...)
}

func appendSettings(b []byte, settings ...http2.Setting) []byte {
	b = appendFrameHead(b, 6*len(settings), http2.FrameSettings, 0, 0)
	for _, s := range settings {
		b = binary.BigEndian.AppendUint16(b, uint16(s.ID))
		b = binary.BigEndian.AppendUint32(b, s.Val)
	}
	return b
}

// connError ends a connection: the peer is told why with a GOAWAY
// (RFC 9113 section 5.4.1).
type connError struct {
	code http2.ErrCode
	why  string
}

func (e connError) Error() string { return fmt.Sprintf("%s (%v)", e.why, e.code) }

// streamError ends one stream with a RST_STREAM (RFC 9113 section 5.4.2).
type streamError struct {
	code http2.ErrCode
	why  string
}

func (e streamError) Error() string { return fmt.Sprintf("%s (%v)", e.why, e.code) }
