package codec

import (
	"reflect"
	"sync"
)

// shapeTable keeps what a decoder knows of each struct type. It makes each shape
// once. As types can contain each other, it makes all shapes of a type's parts
// before it publishes the first, so no decoder sees an incomplete one.
type shapeTable[S any] struct {
	known sync.Map   // reflect.Type -> *S; a nil one says that the type has no shape
	next  sync.Mutex // held while shapes are made
}

// of returns the shape of a type, which build makes along with those of the
// types in it. It may be nil.
func (t *shapeTable[S]) of(typ reflect.Type, build func(reflect.Type, map[reflect.Type]*S) *S) *S {
	if s, ok := t.known.Load(typ); ok {
		return s.(*S)
	}
	t.next.Lock()
	defer t.next.Unlock()
	made := map[reflect.Type]*S{}
	s := build(typ, made)
	for typ, s := range made {
		t.known.Store(typ, s)
	}
	return s
}

// begin returns the shape that typ has already, or is being given, and true;
// otherwise a new one, which it enters into made.
func (t *shapeTable[S]) begin(typ reflect.Type, made map[reflect.Type]*S) (*S, bool) {
	if s, ok := t.known.Load(typ); ok {
		return s.(*S), true
	}
	if s, ok := made[typ]; ok {
		return s, true
	}
	s := new(S)
	made[typ] = s
	return s, false
}
