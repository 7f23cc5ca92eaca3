package encoding

import (
	"context"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// SharesState reports whether lists share the form in which a watch shows
// objects, so that WriteState can write the state with which the watch begins.
func (f *EventEncoder) SharesState() bool {
	form := f.encoder.form
	switch {
	case f.recent != nil, f.encoder.res.FromStorageBatch != nil, form.Media == CBOR, form.As == AsTable:
		return false
	case form.As == AsMetadata && form.MetaVersion != "v1":
		return false
	}
	return true
}

// SendState sends pieces as if they were joined. They hold the end of that many
// events, and stay as they are only until it returns.
type SendState func(ctx context.Context, parts Parts, events int) error

// WriteState writes the selected objects of a snapshot as ADDED events. It is
// faster than AppendEvent: objects go out as they lie in the cache, or from the
// blocks that lists share, and only their frames are added. Nothing is cached
// with them. stop is asked now and then, and ends the events by its error. Of an error
// what precedes it has been sent, and ends with a whole event, except if send itself failed.
func (f *EventEncoder) WriteState(ctx context.Context, snapshot watchcache.Snapshot, selection *watchcache.Selection, send SendState, stop func() error) error {
	w := &stateWriter{encoder: f.encoder, sink: send, stop: stop}
	runs, ok := snapshot.Runs(selection, "")
	var err error
	switch {
	case f.encoder.form.Media == Protobuf && ok:
		err = w.writeBlocks(ctx, runs)
	case f.encoder.form.Media == Protobuf:
		err = w.writeMessages(ctx, snapshot.Select(selection, ""))
	default:
		err = w.writeJSON(ctx, snapshot.Select(selection, ""))
	}
	if w.failed {
		return err
	}
	if sendErr := w.send(ctx); sendErr != nil {
		return sendErr
	}
	return err
}

// stateWriter collects frames and sends them in pieces of writeSize.
type stateWriter struct {
	encoder Encoder
	sink    SendState
	stop    func() error
	failed  bool // the sink has returned an error
	parts   Parts
	events  int // that the parts end
}

// add adds a part, which stays as it is until the next send.
func (w *stateWriter) add(part []byte) { w.parts.Add(part) }

// send sends the parts.
func (w *stateWriter) send(ctx context.Context) error {
	if err := w.sink(ctx, w.parts, w.events); err != nil {
		w.failed = true
		return err
	}
	w.parts.Reset()
	w.events = 0
	return nil
}

// betweenAdded is what stands between two objects of a JSON stream.
var betweenAdded = append(slices.Clone(frameEnd), frameHeads[watchcache.Added]...)

// writeJSON writes objects, or their metadata, as they are in the cache.
func (w *stateWriter) writeJSON(ctx context.Context, objects iter.Seq[*watchcache.Object]) error {
	between, end := betweenAdded, frameEnd
	begin := frameHeads[watchcache.Added]
	shown := func(o *watchcache.Object) ([]byte, error) { return w.encoder.json(ctx, o) }
	if w.encoder.form.As == AsMetadata {
		head := []byte(metadataHead(w.encoder.form.MetaVersion))
		begin = slices.Concat(begin, head)
		between = slices.Concat(closingBrace, betweenAdded, head)
		end = slices.Concat(closingBrace, frameEnd)
		shown = func(o *watchcache.Object) ([]byte, error) {
			json, err := w.encoder.json(ctx, o)
			if err != nil {
				return nil, err
			}
			return metadataOf(w.encoder.res, json), nil
		}
	}
	first := true
	var failed error
	for o := range objects {
		json, err := shown(o)
		if err != nil {
			failed = err // the object before it is not complete
			break
		}
		if first {
			w.add(begin)
		} else {
			w.add(between)
		}
		first = false
		w.add(json)
		w.events++
		if w.parts.Size >= WriteSize {
			if err := w.send(ctx); err != nil {
				return err
			}
			if failed = w.stop(); failed != nil {
				break
			}
		}
	}
	if !first {
		w.add(end)
	}
	return failed
}

// writeBlocks writes the messages that lists share, each in a frame of its own.
func (w *stateWriter) writeBlocks(ctx context.Context, runs iter.Seq[watchcache.Run]) error {
	ids, _ := w.encoder.itemBlocks()
	frames := w.addedFrames()
	items := itemBuffers.Get().(*[]byte)
	defer func() { returnItems(items) }()
	for run := range runs {
		if run.Whole() && itemsSize(run) <= maxRun {
			block, err := w.encoder.packed(ctx, run, ids)
			if err != nil {
				return err
			}
			*items = slices.Grow((*items)[:0], block.Size)[:block.Size]
			if err := unpack(block, *items); err != nil {
				return err
			}
		} else {
			anew, err := w.encoder.borrowItems(ctx, run)
			if err != nil {
				return err
			}
			returnItems(items)
			items = anew
		}
		if err := w.frameItems(ctx, frames, *items); err != nil {
			return err
		}
	}
	return nil
}

// frameItems writes the items of a list in frames.
func (w *stateWriter) frameItems(ctx context.Context, frames *resource.ProtobufFrames, items []byte) error {
	heads := w.parts.Bytes[:0]
	for len(items) > 0 {
		size, n := binary.Uvarint(items[1:])
		message := items[1+n : 1+n+int(size)]
		items = items[1+n+int(size):]
		mark := len(heads)
		heads = frames.AppendHead(heads, len(message))
		w.add(heads[mark:len(heads):len(heads)])
		w.add(message)
		w.add(frames.Tail())
		w.events++
	}
	w.parts.Bytes = heads
	if err := w.send(ctx); err != nil { // the items' buffer is used again
		return err
	}
	return w.stop()
}

// writeMessages writes objects that do not lie together.
func (w *stateWriter) writeMessages(ctx context.Context, objects iter.Seq[*watchcache.Object]) error {
	item := w.encoder.itemAppender(ctx)
	frames := w.addedFrames()
	var items []byte
	for o := range objects {
		var err error
		if items, err = item(items, o); err != nil {
			return err
		}
		if len(items) >= WriteSize {
			if err := w.frameItems(ctx, frames, items); err != nil {
				return err
			}
			items = items[:0]
		}
	}
	return w.frameItems(ctx, frames, items)
}

func (w *stateWriter) addedFrames() *resource.ProtobufFrames {
	kind := w.encoder.res.GroupVersionKind()
	if w.encoder.form.As == AsMetadata {
		kind = partialKind(w.encoder.form.MetaVersion)
	}
	return resource.NewProtobufFrames(watchcache.Added.String(), kind)
}
