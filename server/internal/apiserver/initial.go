package apiserver

import (
	"encoding/binary"
	"errors"
	"iter"
	"net/http"
	"slices"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// gatherer writes several slices as if they were joined.
type gatherer interface {
	WriteBuffers(parts ...[]byte) (int64, error)
}

// gathererOf finds out whether a writer, behind its wrappers, takes several
// slices at once.
func gathererOf(w http.ResponseWriter) gatherer {
	for {
		switch t := w.(type) {
		case gatherer:
			return t
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return nil
		}
	}
}

// initialWriter writes the state that a watch begins with as ADDED events.
// Objects go out as they lie in the cache, or from the blocks that lists use, too:
// only what surrounds them is added. Nothing is kept with them.
type initialWriter struct {
	*watchStream
	presenter
	body   *body
	gather gatherer // nil: parts are joined first
	parts  [][]byte
	size   int // of parts together
	events int // that they end
	heads  []byte
	joined []byte
}

// writeInitial writes all events of the initial state at once, if they are of
// a form that lists share; otherwise it leaves them to the pump.
func (t *watchStream) writeInitial() error {
	body, plain := t.out.(*body)
	form := t.framer.form
	if !plain || !t.watch.InInitialEvents() || t.framer.res.FromStorageBatch != nil || form.media == mediaCBOR || form.as == asTable {
		return nil
	}
	if form.as == asMetadata && form.version != "v1" {
		return nil
	}
	snapshot, selection := t.watch.TakeInitial()
	w := &initialWriter{watchStream: t, presenter: t.framer.presenter, body: body, gather: gathererOf(body.w)}
	runs, ok := snapshot.Runs(selection, "")
	var err error
	switch {
	case form.media == mediaProtobuf && ok:
		err = w.writeBlocks(runs)
	case form.media == mediaProtobuf:
		err = w.writeMessages(snapshot.Select(selection, ""))
	default:
		err = w.writeJSON(snapshot.Select(selection, ""))
	}
	var broken connectionError
	if errors.As(err, &broken) {
		return err
	}
	if sendErr := w.send(); sendErr != nil { // also what comes before an error
		return sendErr
	}
	if err != nil {
		t.fail(err)
		return err
	}
	return t.out.flush()
}

// connectionError is an error of the client's connection: there is nobody left
// to tell.
type connectionError struct{ error }

// Unwrap returns what the connection said.
func (e connectionError) Unwrap() error { return e.error }

// add adds a part, which stays as it is until the next send.
func (w *initialWriter) add(part []byte) {
	w.parts = append(w.parts, part)
	w.size += len(part)
}

// send writes the parts.
func (w *initialWriter) send() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	var err error
	if w.gather != nil {
		_, err = w.gather.WriteBuffers(w.parts...)
		if w.info != nil {
			w.info.written += int64(w.size)
		}
	} else {
		w.joined = w.joined[:0]
		for _, part := range w.parts {
			w.joined = append(w.joined, part...)
		}
		err = w.body.write(w.joined)
	}
	if err != nil {
		return connectionError{err}
	}
	w.count(w.events)
	clear(w.parts)
	w.parts, w.size, w.events = w.parts[:0], 0, 0
	return nil
}

// betweenAdded is what stands between two objects of a JSON stream.
var betweenAdded = append(slices.Clone(frameEnd), frameHeads[watchcache.Added]...)

// writeJSON writes objects, or their metadata, as they are in the cache.
func (w *initialWriter) writeJSON(objects iter.Seq[*watchcache.Object]) error {
	between, end := betweenAdded, frameEnd
	begin := frameHeads[watchcache.Added]
	shown := func(o *watchcache.Object) ([]byte, error) { return w.json(w.ctx, o) }
	if w.form.as == asMetadata {
		head := []byte(metadataHead(w.form.version))
		begin = slices.Concat(begin, head)
		between = slices.Concat(closingBrace, betweenAdded, head)
		end = slices.Concat(closingBrace, frameEnd)
		shown = func(o *watchcache.Object) ([]byte, error) {
			json, err := w.json(w.ctx, o)
			if err != nil {
				return nil, err
			}
			return metadataOf(w.res, json), nil
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
		if w.size >= writeSize {
			if err := w.send(); err != nil {
				return err
			}
		}
	}
	if !first {
		w.add(end)
	}
	return failed
}

// writeBlocks writes the messages that lists share, each in a frame of its own.
func (w *initialWriter) writeBlocks(runs iter.Seq[watchcache.Run]) error {
	ids, _ := w.itemBlocks()
	frames := w.addedFrames()
	items := itemBuffers.Get().(*[]byte)
	defer func() { returnItems(items) }()
	for run := range runs {
		if run.Whole() && itemsSize(run) <= maxRun {
			block, err := w.packed(w.ctx, run, ids)
			if err != nil {
				return err
			}
			*items = slices.Grow((*items)[:0], block.Size)[:block.Size]
			if err := unpack(block, *items); err != nil {
				return err
			}
		} else {
			anew, err := w.borrowItems(w.ctx, run)
			if err != nil {
				return err
			}
			returnItems(items)
			items = anew
		}
		if err := w.frameItems(frames, *items); err != nil {
			return err
		}
	}
	return nil
}

// frameItems writes the items of a list in frames.
func (w *initialWriter) frameItems(frames *resource.ProtobufFrames, items []byte) error {
	heads := w.heads[:0]
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
	w.heads = heads
	return w.send() // the items' buffer is used again
}

// writeMessages writes objects that do not lie together.
func (w *initialWriter) writeMessages(objects iter.Seq[*watchcache.Object]) error {
	item := w.itemAppender(w.ctx)
	frames := w.addedFrames()
	var items []byte
	for o := range objects {
		var err error
		if items, err = item(items, o); err != nil {
			return err
		}
		if len(items) >= writeSize {
			if err := w.frameItems(frames, items); err != nil {
				return err
			}
			items = items[:0]
		}
	}
	return w.frameItems(frames, items)
}

func (w *initialWriter) addedFrames() *resource.ProtobufFrames {
	kind := w.res.GroupVersionKind()
	if w.form.as == asMetadata {
		kind = partialKind(w.form.version)
	}
	return resource.NewProtobufFrames(watchcache.Added.String(), kind)
}
