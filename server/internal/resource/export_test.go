package resource

// What tests hold the struct codecs against.
var (
	DecodeStruct = decodeStruct
	ReadStrictly = unmarshalStrictly
)

// HasStructCodec reports whether a struct codec decodes and encodes objects of the resource.
func (r *Resource) HasStructCodec() bool {
	_, ok, err := r.encodeStruct(nil, r.New(), dropRevision)
	return ok && err == nil
}

// MarshalGeneral is Marshal, and EncodeGeneral Encode, by encoding/json.
func (r *Resource) MarshalGeneral(obj Object) ([]byte, error) {
	return r.marshalGeneral(obj, keepRevision)
}
func (r *Resource) EncodeGeneral(obj Object) ([]byte, error) {
	return r.marshalGeneral(obj, dropRevision)
}
