package codec

import (
	"hash/maphash"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// lastStates holds the last state of each object of a watch with Interning. Most
// changes are of a status; the new state then shares the old one's spec, which
// is the larger part of the decoder's work.
//
// The states are those that an informer holds anyway, so a lastState costs about 75
// bytes. Of the encoded body it has a hash of 128 bits in place of the bytes; the
// seeds of that are random, so that no server can choose bodies that collide.
type lastStates struct {
	last map[types.UID]lastState
	now  lastState // of the object that is being decoded
}

type lastState struct {
	object metav1.Object
	body   [2]uint64 // hash of the encoded body; zero: it had none
}

var bodySeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// bodyOf returns the index of an object's largest part beside its metadata, which
// is the part worth comparing with the last state; -1 if there is none.
func bodyOf(typ reflect.Type) int {
	body := -1
	if !reflect.PointerTo(typ).Implements(reflect.TypeFor[metav1.Object]()) {
		return body
	}
	for i := range typ.NumField() {
		field := typ.Field(i)
		if field.Type.Kind() != reflect.Struct || field.Type == reflect.TypeFor[metav1.ObjectMeta]() || hasOwnJSON(field.Type) {
			continue
		}
		if !field.Anonymous && (body < 0 || field.Type.Size() > typ.Field(body).Type.Size()) {
			body = i
		}
	}
	return body
}

// begin prepares for an object that the decoder reads next.
func (l *lastStates) begin(obj any) {
	if l != nil {
		l.now = lastState{}
		l.now.object, _ = obj.(metav1.Object)
	}
}

// unchanged compares the encoded body of the object that is being decoded with that
// of its last state. If they are equal it copies the body from the last state into
// v, the object's struct, and returns true. The decoder must have read the metadata
// before: the UID in it is the key.
func (l *lastStates) unchanged(v reflect.Value, index int, encoded []byte) bool {
	if l == nil || l.now.object == nil || v.Addr().Interface() != l.now.object {
		return false // an object within an object
	}
	if l.now.body != [2]uint64{} {
		l.now.object = nil // it has two bodies, which become one
		return false
	}
	l.now.body = [2]uint64{maphash.Bytes(bodySeeds[0], encoded), maphash.Bytes(bodySeeds[1], encoded)}
	last, ok := l.last[l.now.object.GetUID()]
	if !ok || last.body != l.now.body {
		return false
	}
	v.Field(index).Set(reflect.ValueOf(last.object).Elem().Field(index))
	return true
}

// end keeps the decoded object as the last state.
func (l *lastStates) end() {
	if l == nil || l.now.object == nil || l.now.body == [2]uint64{} {
		return
	}
	if uid := l.now.object.GetUID(); uid != "" {
		l.last[uid] = l.now
	}
	l.now = lastState{}
}

// forget drops the last state of a deleted object.
func (l *lastStates) forget(uid types.UID) {
	if l != nil {
		delete(l.last, uid)
	}
}
