package delta

import (
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A delta is a frame of Zstandard (RFC 8878) whose window begins with the base, as
// `zstd --patch-from` makes it.

// MaxObjectBytes bounds what a decoder makes of a delta. A server takes objects of 3 MiB
// (apiserver.Config.MaxBodyBytes), which may be larger in JSON than as they were sent. Larger
// ones are sent as they are.
const MaxObjectBytes = 4 * 3 << 20

// encoders are for a size, of a base and an object together: parts of a base that a window
// or a level's table of matches does not reach are of no use. An encoder takes twice its
// window and more, so it is kept for the next object.
type encoders struct {
	maxBytes int
	level    zstd.EncoderLevel
	window   int
	// with and without a base: a change from one to the other would cost an encoder its memory.
	based, plain sync.Pool
}

// encodersBySize are in ascending order.
var encodersBySize = []*encoders{
	{maxBytes: 128 << 10, level: zstd.SpeedFastest, window: 128 << 10},
	{maxBytes: 512 << 10, level: zstd.SpeedDefault, window: 512 << 10},
	{maxBytes: math.MaxInt, level: zstd.SpeedDefault, window: 8 << 20},
}

// compress appends the delta from base to object. An empty base is none.
func compress(dst, base, object []byte) ([]byte, error) {
	i := slices.IndexFunc(encodersBySize, func(e *encoders) bool { return len(base)+len(object) <= e.maxBytes })
	sized := encodersBySize[i]
	pool := &sized.plain
	var options []zstd.EOption
	if len(base) > 0 {
		pool = &sized.based
		options = append(options, zstd.WithEncoderDictRaw(0, base))
	}
	encoder, ok := pool.Get().(*zstd.Encoder)
	if ok {
		if err := encoder.ResetWithOptions(nil, options...); err != nil {
			return dst, err
		}
	} else {
		options = append(options, zstd.WithEncoderLevel(sized.level), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(sized.window), zstd.WithEncoderCRC(false))
		var err error
		if encoder, err = zstd.NewWriter(nil, options...); err != nil {
			return dst, err
		}
	}
	defer pool.Put(encoder)
	return encoder.EncodeAll(object, dst), nil
}

// decoders keep no base: an empty one takes its place.
var decoders = sync.Pool{New: func() any {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxObjectBytes))
	if err != nil {
		panic(err) // constant options
	}
	return decoder
}}

// decompress returns the object that compress was given, if the base is the same.
func decompress(base, compressed []byte) ([]byte, error) {
	decoder := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(decoder)
	options := []zstd.DOption{zstd.WithDecoderDictDelete()}
	if len(base) > 0 {
		options = append(options, zstd.WithDecoderDictRaw(0, base))
	}
	if err := decoder.ResetWithOptions(nil, options...); err != nil {
		return nil, err
	}
	return decoder.DecodeAll(compressed, nil)
}
