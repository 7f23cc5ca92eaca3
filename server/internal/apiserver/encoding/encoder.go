package encoding

import (
	"context"
	"encoding/binary"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// formIDs name the encodings of one resource that are made once per object and then
// shared by all requests.
type formIDs struct {
	shown            watchcache.FormID // JSON of a resource that is stored in another shape; empty: as it is stored
	protobuf         watchcache.FormID // the protobuf envelope
	metadata         watchcache.FormID // JSON of the PartialObjectMetadata, v1
	metadataProtobuf watchcache.FormID
	cbor             watchcache.FormID // CBOR as in a list; see Encoder.cbor
	metadataCBOR     watchcache.FormID
	row              watchcache.FormID // table row with metadata, v1
	delta            watchcache.FormID // the object of an event of a watch with deltas
	items            [2 * len(mediaNames)]blockIDs
}

// knownForms holds formIDs by schema.GroupVersionResource. Ids are never freed. So
// custom resources, which come and go, share the ids of all resources with the same
// version name: an object is encoded only in versions of one kind.
var knownForms sync.Map

func formIDsOf(res *resource.Resource) *formIDs {
	gvr := res.GroupVersionResource()
	if res.Stored().Mixed {
		gvr = schema.GroupVersionResource{Version: res.Version}
	}
	if ids, ok := knownForms.Load(gvr); ok {
		return ids.(*formIDs)
	}
	newFormsMu.Lock()
	defer newFormsMu.Unlock()
	if ids, ok := knownForms.Load(gvr); ok {
		return ids.(*formIDs)
	}
	name := gvr.GroupVersion().String() + "/" + gvr.Resource + " "
	ids := &formIDs{
		shown:            watchcache.NewForm(name + "json"),
		protobuf:         watchcache.NewForm(name + "protobuf"),
		metadata:         watchcache.NewForm(name + "metadata json"),
		metadataProtobuf: watchcache.NewForm(name + "metadata protobuf"),
		cbor:             watchcache.NewForm(name + "cbor"),
		metadataCBOR:     watchcache.NewForm(name + "metadata cbor"),
		row:              watchcache.NewForm(name + "table row"),
		delta:            watchcache.NewForm(name + "delta"),
	}
	for i := range ids.items {
		ids.items[i] = newBlockIDs(name, i)
	}
	knownForms.Store(gvr, ids)
	return ids
}

var newFormsMu sync.Mutex

// Encoder turns cached objects into one form of one resource. It is made per
// request and immutable.
type Encoder struct {
	res         *resource.Resource
	ids         *formIDs
	form        Form
	countEncode func(form string) // called for each encode that is not shared yet
	// noCache: what is encoded is not cached with the objects, where it would stay
	// for as long as they do. Cached forms are used. Only forms of events are
	// cached: they go with the history.
	noCache bool
}

// NewEncoder returns an encoder that caches nothing with the objects. encodes is
// called for each encode whose result was not cached yet.
func NewEncoder(res *resource.Resource, form Form, encodes func(form string)) Encoder {
	return Encoder{res: res, ids: formIDsOf(res), form: form, noCache: true, countEncode: encodes}
}

// isCustom reports whether objects are unstructured: they have no protobuf form, and
// keep kind and apiVersion as items of a list.
func isCustom(res *resource.Resource) bool {
	_, custom := res.New().(*unstructured.Unstructured)
	return custom
}

// formOf returns a form of an object, and caches it there unless the encoder is
// noCache. Readers that want the same form wait for the one that makes it, except
// where making it may call a webhook: then each makes it, and the first is cached.
func (p Encoder) formOf(ctx context.Context, o *watchcache.Object, id watchcache.FormID, encode func(*watchcache.Object) ([]byte, error)) ([]byte, error) {
	switch made := o.HasForm(id, p.res.Generation); {
	case p.noCache && !made:
		return encode(o)
	case p.res.FromStorageBatch != nil && !made:
		form, err := encode(o)
		if err != nil {
			return nil, err
		}
		return o.FormAt(id, p.res.Generation, func(*watchcache.Object) ([]byte, error) { return form, nil })
	}
	return o.FormAt(id, p.res.Generation, encode)
}

// json returns an object's JSON in the version of the resource: the cached bytes
// themselves wherever that is the stored version. What a webhook has made is always
// cached; so is, because it takes no memory, the fact that the form equals the
// stored one. Only a webhook makes it block, until ctx ends at most.
func (p Encoder) json(ctx context.Context, o *watchcache.Object) ([]byte, error) {
	var scratch []byte
	return p.readJSON(ctx, o, &scratch)
}

// readJSON is json for a reader of one object after the other: the result is valid
// until scratch is used again.
func (p Encoder) readJSON(ctx context.Context, o *watchcache.Object, scratch *[]byte) ([]byte, error) {
	stored := o.ReadJSON(scratch)
	shown, err := p.shown(ctx, o, stored)
	if err == nil && len(shown) == 0 {
		return stored, nil
	}
	return shown, err
}

// shown returns an object's JSON in the version of the resource; nothing if that is
// what is stored.
func (p Encoder) shown(ctx context.Context, o *watchcache.Object, stored []byte) ([]byte, error) {
	if p.asStored(o, stored) {
		return nil, nil
	}
	if p.res.FromStorageBatch != nil {
		return p.converted(ctx, o)
	}
	shown, err := p.formOf(ctx, o, p.ids.shown, func(o *watchcache.Object) ([]byte, error) {
		p.countEncode("json")
		obj, err := p.res.Decode(ctx, stored)
		if err != nil {
			return nil, err
		}
		return p.shownAs(stored, obj)
	})
	if err != nil || !p.noCache || len(shown) > 0 {
		return shown, err
	}
	return o.FormAt(p.ids.shown, p.res.Generation, func(*watchcache.Object) ([]byte, error) { return nil, nil })
}

// asStored reports whether the cached bytes are already the form of this resource.
func (p Encoder) asStored(o *watchcache.Object, stored []byte) bool {
	return p.res.Storage == nil || p.res.AsStored != nil && p.res.AsStored(stored, int64(o.Written()))
}

// shownAs encodes what was made of a cached object. If that changed nothing, it
// returns nothing: the cached bytes need no further memory.
func (p Encoder) shownAs(stored []byte, obj resource.Object) ([]byte, error) {
	shown, err := p.res.Marshal(obj)
	if err == nil && resource.SameJSON(shown, stored) {
		return nil, nil
	}
	return shown, err
}

// decode returns an object in the version of the resource. If a webhook makes it,
// its JSON has been cached.
func (p Encoder) decode(ctx context.Context, o *watchcache.Object) (resource.Object, error) {
	if p.res.FromStorageBatch == nil {
		return p.res.Decode(ctx, o.JSON())
	}
	shown, err := p.json(ctx, o)
	if err != nil {
		return nil, err
	}
	return p.res.DecodeShown(shown)
}

// protobuf returns an object's protobuf envelope.
func (p Encoder) protobuf(ctx context.Context, o *watchcache.Object) ([]byte, error) {
	return p.formOf(ctx, o, p.ids.protobuf, func(o *watchcache.Object) ([]byte, error) {
		var scratch []byte
		raw, err := p.message(ctx, nil, o, &scratch)
		if err != nil {
			return nil, err
		}
		return resource.AppendProtobufEnvelope(nil, p.res.GroupVersionKind(), raw), nil
	})
}

// message appends an object's bare protobuf message. A compressed object is decompressed
// into scratch.
func (p Encoder) message(ctx context.Context, dst []byte, o *watchcache.Object, scratch *[]byte) ([]byte, error) {
	p.countEncode("protobuf")
	if p.res.Storage == nil {
		return p.res.AppendProtobuf(dst, o.ReadJSON(scratch))
	}
	obj, err := p.decode(ctx, o)
	if err != nil {
		return dst, err
	}
	raw, err := resource.MarshalProtobufMessage(obj)
	return append(dst, raw...), err
}

// metadata returns the JSON of an object's PartialObjectMetadata. It costs a scan of
// the metadata and a copy, so it is cached only for events, which many watchers
// share.
func (p Encoder) metadata(ctx context.Context, o *watchcache.Object, keep bool) ([]byte, error) {
	encode := func(o *watchcache.Object) ([]byte, error) {
		p.countEncode("metadata")
		shown, err := p.json(ctx, o)
		if err != nil {
			return nil, err
		}
		return metadataJSON(p.res, shown, p.form.MetaVersion), nil
	}
	if !keep || p.form.MetaVersion != "v1" {
		return encode(o)
	}
	return p.formOf(ctx, o, p.ids.metadata, encode)
}

// metadataProtobuf returns an object's PartialObjectMetadata in the protobuf
// envelope.
func (p Encoder) metadataProtobuf(ctx context.Context, o *watchcache.Object) ([]byte, error) {
	encode := func(o *watchcache.Object) ([]byte, error) {
		p.countEncode("metadata protobuf")
		shown, err := p.json(ctx, o)
		if err != nil {
			return nil, err
		}
		return metadataProtobuf(metadataJSON(p.res, shown, p.form.MetaVersion), p.form.MetaVersion)
	}
	if p.form.MetaVersion != "v1" {
		return encode(o)
	}
	return p.formOf(ctx, o, p.ids.metadataProtobuf, encode)
}

// envelope returns the protobuf envelope of an object in the negotiated shape.
func (p Encoder) envelope(ctx context.Context, o *watchcache.Object) ([]byte, error) {
	if p.form.As == AsMetadata {
		return p.metadataProtobuf(ctx, o)
	}
	return p.protobuf(ctx, o)
}

// envelopeContent returns the bare message inside a protobuf envelope of our
// own making, sharing its memory. Items of lists are bare.
func envelopeContent(envelope []byte) []byte {
	const magic = 4
	rest := envelope[magic:]
	typeMeta, n := binary.Uvarint(rest[1:])
	rest = rest[1+n+int(typeMeta):]
	size, n := binary.Uvarint(rest[1:])
	return rest[1+n : 1+n+int(size)]
}
