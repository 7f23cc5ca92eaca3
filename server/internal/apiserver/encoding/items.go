package encoding

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/levelwire/levelwire/server/internal/gzipblock"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// blockIDs name the two ways in which the encoded items of a run are cached.
type blockIDs struct {
	packed   watchcache.FormID // S2: unpacked faster than they could be encrypted, a third of the memory
	deflated watchcache.FormID // a part of a gzip stream
}

// newBlockIDs registers the blocks of a kind; see Encoder.itemBlocks.
func newBlockIDs(name string, kind int) blockIDs {
	name += mediaNames[kind/2] + " items"
	if kind%2 == 1 {
		name += " of metadata"
	}
	return blockIDs{packed: watchcache.NewForm(name), deflated: watchcache.NewForm(name + ", deflated")}
}

// itemBlocks returns the ids of the blocks that hold runs of items in the form of
// the encoder; false if there are none.
func (p Encoder) itemBlocks() (blockIDs, bool) {
	kind := 2 * int(p.form.Media)
	switch {
	case p.form.As == AsTable, p.form.Media == YAML, p.res.FromStorageBatch != nil:
		return blockIDs{}, false
	case p.form.As == AsMetadata && p.form.MetaVersion != "v1":
		return blockIDs{}, false // few ask for it
	case p.form.As == AsMetadata:
		kind++
	}
	return p.ids.items[kind], true
}

// maxRun is how long the items of a run may be, in bytes, to be kept as a
// block: a longer one would need as much memory at once for each that is made.
const maxRun = 4 << 20

// itemsSize is how long the JSON of a run's objects is.
func itemsSize(run watchcache.Run) int {
	size := 0
	for i := range run.Len() {
		size += run.Object(i).Size()
	}
	return size
}

// packed returns the items of a run, packed.
func (p Encoder) packed(ctx context.Context, run watchcache.Run, ids blockIDs) (watchcache.Block, error) {
	return run.Block(ids.packed, p.res.Generation, func(run watchcache.Run) (watchcache.Block, error) {
		text, err := p.borrowItems(ctx, run)
		if err != nil {
			return watchcache.Block{}, err
		}
		defer returnItems(text)
		scratch := itemBuffers.Get().(*[]byte)
		defer returnItems(scratch)
		*scratch = s2.Encode((*scratch)[:cap(*scratch)], *text)
		return watchcache.Block{Bytes: append([]byte(nil), *scratch...), Size: len(*text)}, nil
	})
}

// unpack writes the items of a packed block to dst, which has their length.
func unpack(block watchcache.Block, dst []byte) error {
	if _, err := s2.Decode(dst, block.Bytes); err != nil {
		return fmt.Errorf("unpack %d bytes of a list: %w", block.Size, err)
	}
	return nil
}

// deflated returns the items of a run as a part of a gzip stream.
func (p Encoder) deflated(ctx context.Context, run watchcache.Run, ids blockIDs) (gzipblock.Block, error) {
	block, err := run.Block(ids.deflated, p.res.Generation, func(run watchcache.Run) (watchcache.Block, error) {
		text, err := p.borrowText(ctx, run, ids)
		if err != nil {
			return watchcache.Block{}, err
		}
		defer returnItems(text)
		z, err := gzipblock.Compress(*text)
		return watchcache.Block{Bytes: z.Deflated, Size: z.Size, CRC: z.CRC}, err
	})
	return gzipblock.Block{Deflated: block.Bytes, Size: block.Size, CRC: block.CRC}, err
}

// borrowText is borrowItems, from what is packed if that is at hand.
func (p Encoder) borrowText(ctx context.Context, run watchcache.Run, ids blockIDs) (*[]byte, error) {
	block, ok := run.Kept(ids.packed, p.res.Generation)
	if !ok {
		return p.borrowItems(ctx, run)
	}
	buf := itemBuffers.Get().(*[]byte)
	*buf = slices.Grow((*buf)[:0], block.Size)[:block.Size]
	return buf, unpack(block, *buf)
}

// itemBuffers hold the items of a run while a block is made of them.
var itemBuffers = sync.Pool{New: func() any { return new([]byte) }}

func returnItems(buf *[]byte) {
	if cap(*buf) <= 1<<20 {
		itemBuffers.Put(buf)
	}
}

// borrowItems encodes the items of a run. The buffer must be returned.
func (p Encoder) borrowItems(ctx context.Context, run watchcache.Run) (*[]byte, error) {
	buf := itemBuffers.Get().(*[]byte)
	text := (*buf)[:0]
	item := p.itemAppender(ctx)
	for i := range run.Len() {
		var err error
		if i > 0 && p.form.Media == JSON {
			text = append(text, ',')
		}
		if text, err = item(text, run.Object(i)); err != nil {
			returnItems(buf)
			return nil, err
		}
	}
	*buf = text
	return buf, nil
}

// itemAppender returns the function that appends an object as it stands in a
// list, chosen once for many. Items of a JSON list are not separated by it. What is
// compressed is decompressed behind dst, and moved to where it belongs.
func (p Encoder) itemAppender(ctx context.Context) func([]byte, *watchcache.Object) ([]byte, error) {
	switch {
	case p.form.Media == Protobuf:
		message := p.bareMessages(ctx)
		return func(dst []byte, o *watchcache.Object) ([]byte, error) {
			raw, err := message(o)
			if err != nil {
				return dst, err
			}
			return resource.AppendProtobufListItem(dst, raw), nil
		}
	case p.form.Media == CBOR:
		encode := p.cbor
		if p.form.As == AsMetadata {
			encode = p.metadataCBOR
		}
		return func(dst []byte, o *watchcache.Object) ([]byte, error) {
			item, err := encode(ctx, o)
			return append(dst, item...), err
		}
	case p.form.As == AsMetadata:
		head := metadataHead(p.form.MetaVersion)
		return func(dst []byte, o *watchcache.Object) ([]byte, error) {
			item := append(dst, head...)
			room := item[len(item):]
			shown, err := p.readJSON(ctx, o, &room)
			if err != nil {
				return dst, err
			}
			return append(append(item, metadataOf(p.res, shown)...), '}'), nil
		}
	}
	skip := len(p.res.Prefix()) - 1
	if isCustom(p.res) {
		skip = 0
	}
	return func(dst []byte, o *watchcache.Object) ([]byte, error) {
		room := dst[len(dst):]
		shown, err := p.readJSON(ctx, o, &room)
		if err != nil {
			return dst, err
		}
		from := len(dst)
		dst = append(dst, shown[skip:]...)
		dst[from] = '{' // a built-in kind leaves out kind and apiVersion here
		return dst, nil
	}
}

// bareMessages returns the function that makes an object's protobuf message,
// without an envelope. What it returns is valid until the next call.
func (p Encoder) bareMessages(ctx context.Context) func(*watchcache.Object) ([]byte, error) {
	var buf struct{ message, json []byte } // in one allocation
	return func(o *watchcache.Object) (_ []byte, err error) {
		if p.form.As == AsObject && p.noCache && !o.HasForm(p.ids.protobuf, p.res.Generation) {
			buf.message, err = p.message(ctx, buf.message[:0], o, &buf.json)
			return buf.message, err
		}
		envelope, err := p.envelope(ctx, o)
		if err != nil {
			return nil, err
		}
		return envelopeContent(envelope), nil
	}
}

// DocumentAppender returns the function that encodes an object as it stands in a
// difference: a whole document in JSON, a bare message in protobuf. What it
// returns is valid until the next call.
func (p Encoder) DocumentAppender(ctx context.Context) func(*watchcache.Object) ([]byte, error) {
	switch {
	case p.form.Media == Protobuf:
		return p.bareMessages(ctx)
	case p.form.As == AsMetadata:
		return func(o *watchcache.Object) ([]byte, error) { return p.metadata(ctx, o, false) }
	}
	var scratch []byte
	return func(o *watchcache.Object) ([]byte, error) { return p.readJSON(ctx, o, &scratch) }
}
