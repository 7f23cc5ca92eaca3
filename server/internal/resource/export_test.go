package resource

import "github.com/levelwire/levelwire/server/internal/resource/structjson"

// What tests hold the struct codecs against.
var (
	DecodeStruct = structjson.Decode
	ReadStrictly = unmarshalStrictly
)

// HasStructCodec reports whether a struct codec decodes and encodes objects of the resource.
func (r *Resource) HasStructCodec() bool {
	_, ok, err := r.appendTyped(nil, r.New(), dropRevision)
	return ok && err == nil
}

// MarshalGeneral is Marshal, and EncodeGeneral Encode, by encoding/json.
func (r *Resource) MarshalGeneral(obj Object) ([]byte, error) {
	return r.marshalGeneral(obj, keepRevision)
}
func (r *Resource) EncodeGeneral(obj Object) ([]byte, error) {
	return r.marshalGeneral(obj, dropRevision)
}
