package apiserver

import (
	"net/http"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// writeResult answers with one object of q's resource in any form that reads
// offer, tables and metadata included. obj is in the shape of q.resource.
// shown is its JSON with resourceVersion, as q.resource.Marshal makes it; nil
// has it made here. Neither is modified or kept.
func writeResult(w http.ResponseWriter, r *http.Request, q *request, code int, obj resource.Object, shown []byte) error {
	form, err := negotiate(r, objectForm)
	if err != nil {
		return err
	}
	if shown == nil {
		if shown, err = q.resource.Marshal(obj); err != nil {
			return err
		}
	}
	body, err := encodeShape(form, q, obj, shown)
	if err != nil {
		return err
	}
	writeBody(w, r, code, form.contentType(), body)
	return nil
}

// encodeShape encodes one object, its metadata, or a table of it.
func encodeShape(form accepted, q *request, obj resource.Object, shown []byte) ([]byte, error) {
	switch form.as {
	case asTable:
		include, err := includeObject(q.query)
		if err != nil {
			return nil, err
		}
		body, err := tableOfOne(q.resource, form.version, include, obj, shown)
		if err != nil {
			return nil, err
		}
		return presentJSON(form, body)
	case asMetadata:
		shown = metadataJSON(q.resource, shown, form.version)
		if form.media == mediaProtobuf {
			return metadataProtobuf(shown, form.version)
		}
		if form.media == mediaCBOR {
			body, err := metadataCBOR(shown)
			return append([]byte(resource.CBORTag), body...), err
		}
	}
	if form.media == mediaCBOR {
		return cborDocument(q.resource, obj)
	}
	if form.media == mediaProtobuf {
		return resource.MarshalProtobuf(obj, q.resource.GroupVersionKind())
	}
	return presentJSON(form, shown)
}
