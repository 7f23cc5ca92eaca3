package apiserver

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// framer appends the frames of one watch to a buffer. The object inside is
// encoded once for all watchers; a frame only puts the event's type around
// it, while it is copied to where it is written from.
type framer struct {
	presenter
	include metav1.IncludeObjectPolicy
	columns bool // a table's columns have been sent
}

const frameTail = "}\n"

var frameEnd = []byte(frameTail)

func frameHead(dst []byte, kind string) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, kind...)
	return append(dst, `","object":`...)
}

// event appends one event. live says that it is a change that other watchers
// get too, rather than a part of the initial state.
func (f *framer) event(ctx context.Context, dst []byte, e watchcache.Event, live bool) ([]byte, error) {
	f.passing = !live // forms of events go with the history; others would stay
	if f.form.media == mediaProtobuf {
		envelope, err := f.envelope(ctx, e.Object)
		if err != nil {
			return dst, err
		}
		return resource.AppendProtobufWatchEvent(dst, e.Type.String(), envelope), nil
	}
	if f.form.media == mediaCBOR {
		return f.appendCBOR(ctx, cborFrameHead(dst, e.Type.String()), e.Object)
	}
	mark := len(dst)
	dst, err := f.object(ctx, frameHead(dst, e.Type.String()), e.Object, live)
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

// collect is event for changes, in parts that are not copied wherever an object
// is shown as its cached bytes.
func (f *framer) collect(ctx context.Context, b *watchBuffers, e watchcache.Event) error {
	f.passing = false
	if f.form.media == mediaJSON && f.form.as == asObject {
		shown, err := f.json(ctx, e.Object)
		if err != nil {
			return err
		}
		b.add(frameHeads[e.Type])
		b.add(shown)
		b.add(frameEnd)
		return nil
	}
	mark := len(b.bytes)
	grown, err := f.event(ctx, b.bytes, e, true)
	if err != nil {
		return err
	}
	b.bytes = grown // parts that lie in what it was before stay valid
	b.add(grown[mark:])
	return nil
}

// prepareEvents makes what the events show with few calls of a webhook.
func (f *framer) prepareEvents(ctx context.Context, events []watchcache.Event) error {
	if f.res.FromStorageBatch == nil {
		return nil
	}
	return f.prepare(ctx, func(yield func(*watchcache.Object) bool) {
		for _, e := range events {
			if !yield(e.Object) {
				return
			}
		}
	})
}

// object appends an object's JSON in the negotiated shape.
func (f *framer) object(ctx context.Context, dst []byte, o *watchcache.Object, live bool) ([]byte, error) {
	switch f.form.as {
	case asMetadata:
		partial, err := f.metadata(ctx, o, live)
		return append(dst, partial...), err
	case asTable:
		row, err := f.eventRow(ctx, o, live)
		if err != nil {
			return dst, err
		}
		return f.table(dst, o.Revision, row)
	}
	shown, err := f.json(ctx, o)
	return append(dst, shown...), err
}

// eventRow returns a table row. Ages are those of the moment of the event, so
// that all watchers can share it; rows of the initial state are made anew.
func (f *framer) eventRow(ctx context.Context, o *watchcache.Object, live bool) ([]byte, error) {
	if !live || f.include != metav1.IncludeMetadata || f.form.version != "v1" {
		return f.row(ctx, o, f.include)
	}
	return o.FormAt(f.ids.row, f.res.Generation, func(o *watchcache.Object) ([]byte, error) {
		return f.row(ctx, o, metav1.IncludeMetadata)
	})
}

// table appends a table of one row. The first one of a stream defines the
// columns.
func (f *framer) table(dst []byte, revision storage.Revision, row []byte) ([]byte, error) {
	columns := f.res.Columns
	if f.columns {
		columns = nil
	}
	f.columns = true
	meta := fmt.Appendf(nil, `{"resourceVersion":"%d"}`, revision)
	dst, err := appendTableHead(dst, f.form.version, meta, columns)
	if err != nil {
		return dst, err
	}
	dst = append(dst, row...)
	return append(dst, tableTail...), nil
}

// bookmark appends a bookmark: an otherwise empty object that says how far the
// stream has come. initialEnd marks the end of the initial events.
func (f *framer) bookmark(dst []byte, revision storage.Revision, initialEnd bool) ([]byte, error) {
	shown := fmt.Appendf(nil, `%s"metadata":{"resourceVersion":"%d"`, f.res.Prefix(), revision)
	if initialEnd {
		shown = fmt.Appendf(shown, `,"annotations":{%q:"true"}`, metav1.InitialEventsAnnotationKey)
	}
	shown = append(shown, "}}"...)
	if f.form.media == mediaProtobuf {
		envelope, err := f.bookmarkEnvelope(revision, initialEnd)
		if err != nil {
			return dst, err
		}
		return resource.AppendProtobufWatchEvent(dst, string(watch.Bookmark), envelope), nil
	}
	if f.form.media == mediaCBOR {
		return f.bookmarkCBOR(cborFrameHead(dst, string(watch.Bookmark)), shown)
	}
	mark := len(dst)
	dst, err := f.bookmarkObject(frameHead(dst, string(watch.Bookmark)), shown, revision)
	if err != nil {
		return dst[:mark], err
	}
	return append(dst, frameTail...), nil
}

func (f *framer) bookmarkObject(dst, shown []byte, revision storage.Revision) ([]byte, error) {
	switch f.form.as {
	case asMetadata:
		return append(dst, metadataJSON(f.res, shown, f.form.version)...), nil
	case asTable:
		obj := f.res.New()
		obj.SetResourceVersion(read.FormatResourceVersion(revision))
		// The row must carry metadata whatever includeObject says: the
		// annotation is the point of it.
		include := f.include
		if include == metav1.IncludeNone {
			include = metav1.IncludeMetadata
		}
		row, err := appendRow(nil, f.res, f.form.version, include, obj, shown)
		if err != nil {
			return dst, err
		}
		return f.table(dst, revision, row)
	}
	return append(dst, shown...), nil
}

func (f *framer) bookmarkEnvelope(revision storage.Revision, initialEnd bool) ([]byte, error) {
	meta := metav1.ObjectMeta{ResourceVersion: read.FormatResourceVersion(revision)}
	if initialEnd {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	if f.form.as == asMetadata {
		partial := &metav1.PartialObjectMetadata{ObjectMeta: meta}
		return resource.MarshalProtobuf(partial, schema.GroupVersionKind{
			Group: "meta.k8s.io", Version: f.form.version, Kind: "PartialObjectMetadata"})
	}
	obj := f.res.New()
	obj.SetResourceVersion(meta.ResourceVersion)
	obj.SetAnnotations(meta.Annotations)
	return resource.MarshalProtobuf(obj, f.res.GroupVersionKind())
}

// failure appends the in-stream form of an error, after which a stream ends.
func (f *framer) failure(dst []byte, err error) ([]byte, error) {
	body, err := encodeObject(accepted{media: f.form.media}, status.Of(err))
	if err != nil {
		return dst, err
	}
	if f.form.media == mediaProtobuf {
		return resource.AppendProtobufWatchEvent(dst, string(watch.Error), body), nil
	}
	if f.form.media == mediaCBOR {
		return append(cborFrameHead(dst, string(watch.Error)), body[len(resource.CBORTag):]...), nil
	}
	dst = frameHead(dst, string(watch.Error))
	dst = append(dst, body...)
	return append(dst, frameTail...), nil
}
