package encoding

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/server/internal/delta"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Parts are pieces of encoded events that are sent as if they were joined. They
// may share memory with cached objects, or lie in Bytes.
type Parts struct {
	Pieces [][]byte
	Size   int    // of the pieces together
	Bytes  []byte // what had to be copied
}

// Add adds a piece, which must stay as it is until the parts are reset.
func (b *Parts) Add(piece []byte) {
	b.Pieces = append(b.Pieces, piece)
	b.Size += len(piece)
}

// Reset drops the pieces and keeps the memory.
func (b *Parts) Reset() {
	clear(b.Pieces)
	b.Pieces, b.Bytes, b.Size = b.Pieces[:0], b.Bytes[:0], 0
}

// EventEncoder encodes the events of one watch. The object inside an event is
// encoded once for all watches; a frame only puts the event's type around it, while
// it is copied to where it is written from.
type EventEncoder struct {
	encoder Encoder
	include metav1.IncludeObjectPolicy
	columns bool          // a table's columns have been sent
	recent  *delta.Recent // nil: the watch is without deltas
}

// NewEventEncoder returns the encoder of a watch; include is what the rows of tables
// contain.
func NewEventEncoder(encoder Encoder, include metav1.IncludeObjectPolicy) EventEncoder {
	return EventEncoder{encoder: encoder, include: include}
}

// Resource returns the resource in whose version objects are encoded.
func (f *EventEncoder) Resource() *resource.Resource { return f.encoder.res }

// SetResource encodes the following events for another definition of the same
// custom resource.
func (f *EventEncoder) SetResource(res *resource.Resource) {
	f.encoder.res = res
	f.columns = false // the new definition may have other columns
}

// Form returns the form of the stream.
func (f *EventEncoder) Form() Form { return f.encoder.form }

const frameTail = "}\n"

var frameEnd = []byte(frameTail)

func frameHead(dst []byte, kind string) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, kind...)
	return append(dst, `","object":`...)
}

// AppendEvent appends one event. live says that it is a change, which other watches
// get too, rather than a part of the initial state.
func (f *EventEncoder) AppendEvent(ctx context.Context, dst []byte, e watchcache.Event, live bool) ([]byte, error) {
	f.encoder.noCache = !live // forms of events go with the history; others would stay
	if f.encoder.form.Media == Protobuf {
		envelope, err := f.encoder.envelope(ctx, e.Object)
		if err != nil {
			return dst, err
		}
		return resource.AppendProtobufWatchEvent(dst, e.Type.String(), envelope), nil
	}
	if f.encoder.form.Media == CBOR {
		return f.encoder.appendCBOR(ctx, cborFrameHead(dst, e.Type.String()), e.Object)
	}
	if f.recent != nil {
		shown, err := f.delta(ctx, e)
		if err != nil {
			return dst, err
		}
		return append(append(frameHead(dst, e.Type.String()), shown...), frameTail...), nil
	}
	mark := len(dst)
	dst, err := f.appendObject(ctx, frameHead(dst, e.Type.String()), e.Object, live)
	if err != nil {
		return dst[:mark], err
	}
	return append(dst, frameTail...), nil
}

// frameHeads are what precedes an object in a JSON stream, by event type.
var frameHeads = [...][]byte{
	watchcache.Added:    frameHead(nil, watchcache.Added.String()),
	watchcache.Modified: frameHead(nil, watchcache.Modified.String()),
	watchcache.Deleted:  frameHead(nil, watchcache.Deleted.String()),
}

// AddEvent adds one change to b. The bytes of an object are not copied wherever its
// form is the cached bytes.
func (f *EventEncoder) AddEvent(ctx context.Context, b *Parts, e watchcache.Event) error {
	f.encoder.noCache = false
	if f.encoder.form.Media == JSON && f.encoder.form.As == AsObject {
		shown, err := f.shown(ctx, e)
		if err != nil {
			return err
		}
		b.Add(frameHeads[e.Type])
		b.Add(shown)
		b.Add(frameEnd)
		return nil
	}
	mark := len(b.Bytes)
	grown, err := f.AppendEvent(ctx, b.Bytes, e, true)
	if err != nil {
		return err
	}
	b.Bytes = grown // parts that lie in what it was before stay valid
	b.Add(grown[mark:])
	return nil
}

// shown returns the object of an event in JSON.
func (f *EventEncoder) shown(ctx context.Context, e watchcache.Event) ([]byte, error) {
	if f.recent != nil {
		return f.delta(ctx, e)
	}
	return f.encoder.json(ctx, e.Object)
}

// Prepare has a webhook convert the objects of the events with few calls, if the
// resource needs one.
func (f *EventEncoder) Prepare(ctx context.Context, events []watchcache.Event) error {
	if f.encoder.res.FromStorageBatch == nil {
		return nil
	}
	return f.encoder.prepare(ctx, unlimited, func(yield func(*watchcache.Object) bool) {
		for _, e := range events {
			if !yield(e.Object) {
				return
			}
		}
	})
}

// appendObject appends an appendObject's JSON in the negotiated shape.
func (f *EventEncoder) appendObject(ctx context.Context, dst []byte, o *watchcache.Object, live bool) ([]byte, error) {
	switch f.encoder.form.As {
	case AsMetadata:
		partial, err := f.encoder.metadata(ctx, o, live)
		return append(dst, partial...), err
	case AsTable:
		row, err := f.tableRow(ctx, o, live)
		if err != nil {
			return dst, err
		}
		return f.appendTable(dst, o.Revision, row)
	}
	room := dst[len(dst):] // where a compressed object is decompressed
	shown, err := f.encoder.readJSON(ctx, o, &room)
	return append(dst, shown...), err
}

// tableRow returns a table row. Its ages are those at the time of the event, so that
// all watches can share it; rows of the initial state are made anew.
func (f *EventEncoder) tableRow(ctx context.Context, o *watchcache.Object, live bool) ([]byte, error) {
	if !live || f.include != metav1.IncludeMetadata || f.encoder.form.MetaVersion != "v1" {
		return f.encoder.row(ctx, o, f.include)
	}
	return f.encoder.formOf(ctx, o, f.encoder.ids.row, func(o *watchcache.Object) ([]byte, error) {
		return f.encoder.row(ctx, o, metav1.IncludeMetadata)
	})
}

// appendTable appends a appendTable of one row. The first one of a stream defines the
// columns.
func (f *EventEncoder) appendTable(dst []byte, revision storage.Revision, row []byte) ([]byte, error) {
	columns := f.encoder.res.Columns
	if f.columns {
		columns = nil
	}
	f.columns = true
	meta := fmt.Appendf(nil, `{"resourceVersion":"%d"}`, revision)
	dst, err := appendTableHead(dst, f.encoder.form.MetaVersion, meta, columns)
	if err != nil {
		return dst, err
	}
	dst = append(dst, row...)
	return append(dst, tableTail...), nil
}

// AppendBookmark appends a bookmark: an otherwise empty object whose version is how
// far the stream has come. initialEnd marks the end of the initial events.
func (f *EventEncoder) AppendBookmark(dst []byte, revision storage.Revision, initialEnd bool) ([]byte, error) {
	shown := fmt.Appendf(nil, `%s"metadata":{"resourceVersion":"%d"`, f.encoder.res.Prefix(), revision)
	if initialEnd {
		shown = fmt.Appendf(shown, `,"annotations":{%q:"true"}`, metav1.InitialEventsAnnotationKey)
	}
	shown = append(shown, "}}"...)
	if f.encoder.form.Media == Protobuf {
		envelope, err := f.bookmarkEnvelope(revision, initialEnd)
		if err != nil {
			return dst, err
		}
		return resource.AppendProtobufWatchEvent(dst, string(watch.Bookmark), envelope), nil
	}
	if f.encoder.form.Media == CBOR {
		return f.appendBookmarkCBOR(cborFrameHead(dst, string(watch.Bookmark)), shown)
	}
	mark := len(dst)
	dst, err := f.appendBookmarkObject(frameHead(dst, string(watch.Bookmark)), shown, revision)
	if err != nil {
		return dst[:mark], err
	}
	return append(dst, frameTail...), nil
}

func (f *EventEncoder) appendBookmarkObject(dst, shown []byte, revision storage.Revision) ([]byte, error) {
	switch f.encoder.form.As {
	case AsMetadata:
		return append(dst, metadataJSON(f.encoder.res, shown, f.encoder.form.MetaVersion)...), nil
	case AsTable:
		obj := f.encoder.res.New()
		obj.SetResourceVersion(read.FormatResourceVersion(revision))
		// The row must carry metadata whatever includeObject asks for: the
		// annotation is the point of it.
		include := f.include
		if include == metav1.IncludeNone {
			include = metav1.IncludeMetadata
		}
		row, err := appendRow(nil, f.encoder.res, f.encoder.form.MetaVersion, include, obj, shown)
		if err != nil {
			return dst, err
		}
		return f.appendTable(dst, revision, row)
	}
	return append(dst, shown...), nil
}

func (f *EventEncoder) bookmarkEnvelope(revision storage.Revision, initialEnd bool) ([]byte, error) {
	meta := metav1.ObjectMeta{ResourceVersion: read.FormatResourceVersion(revision)}
	if initialEnd {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	if f.encoder.form.As == AsMetadata {
		partial := &metav1.PartialObjectMetadata{ObjectMeta: meta}
		return resource.MarshalProtobuf(partial, schema.GroupVersionKind{
			Group: "meta.k8s.io", Version: f.encoder.form.MetaVersion, Kind: "PartialObjectMetadata"})
	}
	obj := f.encoder.res.New()
	obj.SetResourceVersion(meta.ResourceVersion)
	obj.SetAnnotations(meta.Annotations)
	return resource.MarshalProtobuf(obj, f.encoder.res.GroupVersionKind())
}

// AppendError appends the event of an error, after which a stream ends.
func (f *EventEncoder) AppendError(dst []byte, err error) ([]byte, error) {
	body, err := encodeObject(Form{Media: f.encoder.form.Media}, status.Of(err))
	if err != nil {
		return dst, err
	}
	if f.encoder.form.Media == Protobuf {
		return resource.AppendProtobufWatchEvent(dst, string(watch.Error), body), nil
	}
	if f.encoder.form.Media == CBOR {
		return append(cborFrameHead(dst, string(watch.Error)), body[len(resource.CBORTag):]...), nil
	}
	dst = frameHead(dst, string(watch.Error))
	dst = append(dst, body...)
	return append(dst, frameTail...), nil
}
