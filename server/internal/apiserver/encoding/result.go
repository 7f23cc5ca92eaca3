package encoding

import (
	"context"
	"net/http"
	"net/url"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// WriteResult answers with one object of q's resource in any form that reads offer,
// tables and metadata included. obj is in the version of q.Resource. shown is its
// JSON with resourceVersion, as q.Resource.Marshal makes it; if nil, it is made
// here. Neither is modified or kept.
func WriteResult(w http.ResponseWriter, r *http.Request, q *request.Info, code int, obj resource.Object, shown []byte) error {
	defer request.MeasureAnswer(w).End()
	form, err := Negotiate(r, ObjectOffer)
	if err != nil {
		return err
	}
	if shown == nil {
		if shown, err = q.Resource.Marshal(obj); err != nil {
			return err
		}
	}
	body, err := encodeShape(form, q.Resource, q.Query, obj, shown)
	if err != nil {
		return err
	}
	WriteBody(w, r, code, form.ContentType(), body)
	return nil
}

// encodeShape encodes one object, its metadata, or a table of it.
func encodeShape(form Form, res *resource.Resource, query url.Values, obj resource.Object, shown []byte) ([]byte, error) {
	switch form.As {
	case AsTable:
		include, err := IncludeObject(query)
		if err != nil {
			return nil, err
		}
		body, err := tableOfOne(res, form.MetaVersion, include, obj, shown)
		if err != nil {
			return nil, err
		}
		return presentJSON(form, body)
	case AsMetadata:
		shown = metadataJSON(res, shown, form.MetaVersion)
		if form.Media == Protobuf {
			return metadataProtobuf(shown, form.MetaVersion)
		}
		if form.Media == CBOR {
			body, err := metadataCBOR(shown)
			return append([]byte(resource.CBORTag), body...), err
		}
	}
	if form.Media == CBOR {
		return cborDocument(res, obj)
	}
	if form.Media == Protobuf {
		return resource.MarshalProtobuf(obj, res.GroupVersionKind())
	}
	return presentJSON(form, shown)
}

// Document encodes one cached object as a whole answer; the includeObject of query
// decides what the row of a table contains. Only tables and CBOR need the object
// decoded.
func (p Encoder) Document(ctx context.Context, object *watchcache.Object, query url.Values) ([]byte, error) {
	if p.form.Media == Protobuf {
		return p.envelope(ctx, object)
	}
	if p.form.Media == CBOR {
		return p.appendCBOR(ctx, []byte(resource.CBORTag), object)
	}
	shown, err := p.json(ctx, object)
	if err != nil {
		return nil, err
	}
	if p.form.As != AsTable {
		return encodeShape(p.form, p.res, query, nil, shown)
	}
	obj, err := p.res.DecodeShown(shown)
	if err != nil {
		return nil, err
	}
	return encodeShape(p.form, p.res, query, obj, shown)
}
