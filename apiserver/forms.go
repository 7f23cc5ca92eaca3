package apiserver

import (
	"encoding/binary"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/resource"
	"github.com/levelwire/levelwire/watchcache"
)

// formIDs name the encodings of one resource that are made once per object
// and then shared by all who read it.
type formIDs struct {
	shown            watchcache.FormID // JSON of a resource that is stored in another shape
	protobuf         watchcache.FormID // the protobuf envelope
	metadata         watchcache.FormID // JSON of the PartialObjectMetadata, v1
	metadataProtobuf watchcache.FormID
	cbor             watchcache.FormID // CBOR as in a list; see presenter.cbor
	metadataCBOR     watchcache.FormID
	row              watchcache.FormID // table row with metadata, v1
}

// knownForms holds formIDs by schema.GroupVersionResource. Ids are never freed,
// so a custom resource that comes back gets its old ones.
var knownForms sync.Map

func formsOf(gvr schema.GroupVersionResource) *formIDs {
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
	}
	knownForms.Store(gvr, ids)
	return ids
}

var newFormsMu sync.Mutex

// presenter turns cached objects into the forms of one resource. It is made
// per request and immutable.
type presenter struct {
	res     *resource.Resource
	ids     *formIDs
	form    accepted
	encodes func(form string) // called for each encode that is not shared yet
}

func (s *Server) presenter(res *resource.Resource, form accepted) presenter {
	return presenter{
		res: res, ids: formsOf(res.GroupVersionResource()), form: form,
		encodes: s.metrics.countEncode,
	}
}

// isCustom says that objects are unstructured: they have no protobuf form, and
// carry kind and apiVersion as items of a list.
func isCustom(res *resource.Resource) bool {
	_, custom := res.New().(*unstructured.Unstructured)
	return custom
}

// json returns an object's JSON in the shape of the resource: the cached
// bytes themselves wherever the shape is the stored one.
func (p presenter) json(o *watchcache.Object) ([]byte, error) {
	if p.res.Storage == nil {
		return o.JSON, nil
	}
	return o.Form(p.ids.shown, func(o *watchcache.Object) ([]byte, error) {
		p.encodes("json")
		obj, err := p.res.Decode(o.JSON)
		if err != nil {
			return nil, err
		}
		return p.res.Marshal(obj)
	})
}

// protobuf returns an object's protobuf envelope.
func (p presenter) protobuf(o *watchcache.Object) ([]byte, error) {
	return o.Form(p.ids.protobuf, func(o *watchcache.Object) ([]byte, error) {
		p.encodes("protobuf")
		obj, err := p.res.Decode(o.JSON)
		if err != nil {
			return nil, err
		}
		return resource.MarshalProtobuf(obj, p.res.GroupVersionKind())
	})
}

// metadata returns the JSON of an object's PartialObjectMetadata. It costs a
// scan of the metadata and a copy, so it is kept only for events, which many
// watchers share.
func (p presenter) metadata(o *watchcache.Object, keep bool) ([]byte, error) {
	encode := func(o *watchcache.Object) ([]byte, error) {
		p.encodes("metadata")
		shown, err := p.json(o)
		if err != nil {
			return nil, err
		}
		return metadataJSON(p.res, shown, p.form.version), nil
	}
	if !keep || p.form.version != "v1" {
		return encode(o)
	}
	return o.Form(p.ids.metadata, encode)
}

// metadataProtobuf returns an object's PartialObjectMetadata in the protobuf
// envelope.
func (p presenter) metadataProtobuf(o *watchcache.Object) ([]byte, error) {
	encode := func(o *watchcache.Object) ([]byte, error) {
		p.encodes("metadata protobuf")
		shown, err := p.json(o)
		if err != nil {
			return nil, err
		}
		return metadataProtobuf(metadataJSON(p.res, shown, p.form.version))
	}
	if p.form.version != "v1" {
		return encode(o)
	}
	return o.Form(p.ids.metadataProtobuf, encode)
}

// envelope returns what an object looks like in protobuf in the negotiated
// shape.
func (p presenter) envelope(o *watchcache.Object) ([]byte, error) {
	if p.form.as == asMetadata {
		return p.metadataProtobuf(o)
	}
	return p.protobuf(o)
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
