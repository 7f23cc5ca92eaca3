package load

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/net/http2"
)

const (
	frameHeader = 9
	// maxControl bounds a frame other than DATA, which are gathered before they
	// are looked at. It is also the largest frame that we allow the server.
	maxControl = 1 << 20
)

// frames cuts a stream of bytes into HTTP/2 frames (RFC 9113, section 4.1),
// in whatever pieces it arrives. DATA is handed on piece by piece where it
// lies; the rest, which is small and rare, is gathered first.
type frames struct {
	header [frameHeader]byte
	have   int // bytes of header

	kind    http2.FrameType
	flags   http2.Flags
	stream  uint32
	left    int  // of the payload
	padding int  // at the payload's end
	padded  bool // the padding's length has not been read yet
	payload []byte
}

// frameHandler receives what frames cuts out. Slices are valid during the call.
type frameHandler interface {
	// dataBegins: a DATA frame of length bytes has begun, padding included.
	dataBegins(stream uint32, length int) error
	// data is a piece of the frame that has begun.
	data(piece []byte) error
	// dataEnds: the frame was the stream's last, or not.
	dataEnds(last bool) error
	// control is a whole frame of another kind.
	control(kind http2.FrameType, flags http2.Flags, stream uint32, payload []byte) error
}

// cut takes the next bytes. It keeps none of them.
func (f *frames) cut(b []byte, to frameHandler) error {
	for len(b) > 0 {
		var err error
		switch {
		case f.have < frameHeader:
			n := copy(f.header[f.have:], b)
			f.have += n
			b = b[n:]
			if f.have == frameHeader {
				err = f.begin(to)
			}
		case f.kind == http2.FrameData:
			b, err = f.cutData(b, to)
		default:
			n := min(f.left, len(b))
			f.payload = append(f.payload, b[:n]...)
			f.left -= n
			b = b[n:]
			err = f.endControl(to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin reads a header. A frame without payload is complete with it.
func (f *frames) begin(to frameHandler) error {
	f.left = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
	f.kind, f.flags = http2.FrameType(f.header[3]), http2.Flags(f.header[4])
	f.stream = binary.BigEndian.Uint32(f.header[5:]) &^ (1 << 31)
	if f.left > maxControl {
		return fmt.Errorf("%w: a frame of %d bytes", errProtocol, f.left)
	}
	if f.kind != http2.FrameData {
		f.payload = f.payload[:0]
		return f.endControl(to)
	}
	f.padding, f.padded = 0, f.flags.Has(http2.FlagDataPadded)
	if f.padded && f.left == 0 {
		return fmt.Errorf("%w: DATA without the length of its padding", errProtocol)
	}
	if err := to.dataBegins(f.stream, f.left); err != nil {
		return err
	}
	return f.endData(to)
}

func (f *frames) cutData(b []byte, to frameHandler) (rest []byte, err error) {
	if f.padded {
		f.padded, f.padding = false, int(b[0])
		f.left--
		if f.padding > f.left {
			return nil, fmt.Errorf("%w: more padding than payload", errProtocol)
		}
		return b[1:], f.endData(to)
	}
	n := min(f.left, len(b))
	if content := min(n, f.left-f.padding); content > 0 {
		if err := to.data(b[:content]); err != nil {
			return nil, err
		}
	}
	f.left -= n
	f.padding = min(f.padding, f.left)
	return b[n:], f.endData(to)
}

func (f *frames) endData(to frameHandler) error {
	if f.left > 0 {
		return nil
	}
	f.have = 0
	return to.dataEnds(f.flags.Has(http2.FlagDataEndStream))
}

func (f *frames) endControl(to frameHandler) error {
	if f.left > 0 {
		return nil
	}
	f.have = 0
	return to.control(f.kind, f.flags, f.stream, f.payload)
}
