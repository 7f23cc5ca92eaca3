package resource

// What tests hold the readers and writers by shape against.
var (
	ReadByShape  = readByShape
	ReadStrictly = unmarshalStrictly
)

// HasShape says whether objects of the resource are read and written by shape.
func (r *Resource) HasShape() bool {
	_, ok, err := r.writeByShape(nil, r.New(), dropRevision)
	return ok && err == nil
}

// MarshalGeneral is Marshal, and EncodeGeneral Encode, by encoding/json.
func (r *Resource) MarshalGeneral(obj Object) ([]byte, error) {
	return r.marshalGeneral(obj, keepRevision)
}
func (r *Resource) EncodeGeneral(obj Object) ([]byte, error) {
	return r.marshalGeneral(obj, dropRevision)
}
