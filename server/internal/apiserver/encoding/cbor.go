package encoding

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/gzipblock"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// cbor returns an object's CBOR as it stands in a list: without the tag of a
// document, and without kind and apiVersion unless it is a custom resource.
func (p Encoder) cbor(ctx context.Context, o *watchcache.Object) ([]byte, error) {
	return p.formOf(ctx, o, p.ids.cbor, func(o *watchcache.Object) ([]byte, error) {
		p.countEncode("cbor")
		obj, err := p.decode(ctx, o)
		if err != nil {
			return nil, err
		}
		return bareCBOR(obj)
	})
}

// bareCBOR encodes an object that is ours to change. Without a kind it can
// stand in a list as it is, and gets one when it stands alone.
func bareCBOR(obj resource.Object) ([]byte, error) {
	if _, custom := obj.(*unstructured.Unstructured); !custom {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return resource.MarshalCBOR(obj)
}

// metadataCBOR returns the CBOR of an object's PartialObjectMetadata. It includes
// the kind, in lists as well.
func (p Encoder) metadataCBOR(ctx context.Context, o *watchcache.Object) ([]byte, error) {
	encode := func(o *watchcache.Object) ([]byte, error) {
		p.countEncode("metadata cbor")
		shown, err := p.json(ctx, o)
		if err != nil {
			return nil, err
		}
		return metadataCBOR(metadataJSON(p.res, shown, p.form.MetaVersion))
	}
	if p.form.MetaVersion != "v1" {
		return encode(o)
	}
	return p.formOf(ctx, o, p.ids.metadataCBOR, encode)
}

// appendCBOR appends an object in the negotiated shape, with its kind.
func (p Encoder) appendCBOR(ctx context.Context, dst []byte, o *watchcache.Object) ([]byte, error) {
	if p.form.As == AsMetadata {
		partial, err := p.metadataCBOR(ctx, o)
		return append(dst, partial...), err
	}
	bare, err := p.cbor(ctx, o)
	if err != nil {
		return dst, err
	}
	if isCustom(p.res) {
		return append(dst, bare...), nil
	}
	return resource.AppendCBORKind(dst, p.res.GroupVersionKind(), bare)
}

// metadataCBOR encodes a PartialObjectMetadata that is given as JSON.
func metadataCBOR(partial []byte) ([]byte, error) {
	obj, err := decodePartial(partial)
	if err != nil {
		return nil, err
	}
	return resource.MarshalCBOR(obj)
}

// cborDocument encodes an object that is not cached, and does not modify it.
func cborDocument(res *resource.Resource, obj resource.Object) ([]byte, error) {
	obj = obj.DeepCopyObject().(resource.Object)
	obj.GetObjectKind().SetGroupVersionKind(res.GroupVersionKind())
	body, err := resource.MarshalCBOR(obj)
	return append([]byte(resource.CBORTag), body...), err
}

// writeCBOR writes a list. How many items it has comes first, so they are
// visited twice; they are encoded once.
func (l *listWriter) writeCBOR(p read.Page) error {
	meta, err := resource.MarshalCBOR(p.Meta)
	if err != nil {
		return err
	}
	count := 0
	for range p.Items {
		count++
	}
	gvk := l.listKind()
	buf := resource.AppendCBORMap([]byte(resource.CBORTag), 4)
	for _, member := range [][2]string{{"kind", gvk.Kind}, {"apiVersion", gvk.GroupVersion().String()}} {
		buf = resource.AppendCBORString(resource.AppendCBORString(buf, member[0]), member[1])
	}
	buf = append(resource.AppendCBORString(buf, "metadata"), meta...)
	buf = resource.AppendCBORArray(resource.AppendCBORString(buf, "items"), count)
	if _, err := l.answer.Write(buf); err != nil {
		return err
	}
	encode := l.encoder.cbor
	if l.encoder.form.As == AsMetadata {
		encode = l.encoder.metadataCBOR
	}
	if ids, ok := l.encoder.itemBlocks(); ok && p.Runs != nil {
		return l.writeRuns(p.Runs, ids, gzipblock.Block{})
	}
	for object := range p.Items {
		item, err := encode(l.answer.r.Context(), object)
		if err != nil {
			return err
		}
		if _, err := l.answer.Write(item); err != nil {
			return err
		}
	}
	return nil
}

// cborFrameHead appends a watch event up to its object: one item of a CBOR
// sequence (RFC 8742), which needs no delimiter.
func cborFrameHead(dst []byte, kind string) []byte {
	dst = resource.AppendCBORMap(append(dst, resource.CBORTag...), 2)
	dst = resource.AppendCBORString(resource.AppendCBORString(dst, "type"), kind)
	return resource.AppendCBORString(dst, "object")
}

// appendBookmarkCBOR appends a bookmark that is given as JSON.
func (f *EventEncoder) appendBookmarkCBOR(dst, shown []byte) ([]byte, error) {
	if f.encoder.form.As == AsMetadata {
		partial, err := metadataCBOR(metadataJSON(f.encoder.res, shown, f.encoder.form.MetaVersion))
		return append(dst, partial...), err
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(shown); err != nil {
		return dst, err
	}
	body, err := resource.MarshalCBOR(obj)
	return append(dst, body...), err
}
