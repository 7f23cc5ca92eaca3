package jsonproto

import (
	"encoding/binary"
	"encoding/json"
	"reflect"
	"sync"

	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/internal/wirefield"
)

// Plan says how the JSON of a Go type becomes its protobuf message.
type Plan struct {
	fields  []fieldPlan  // in ascending order of tags, as they are encoded
	members []memberPlan // in the order of the type, as our encoder writes JSON
	slots   int          // spans that one message needs, those of its groups included
	empty   []byte       // the message of the zero value
	decoded reflect.Type // not nil: only decoding tells; the rest is unset
}

// fieldPlan is one field of a message.
type fieldPlan struct {
	head   []byte // the tag
	slot   int    // where its span is noted
	group  *Plan  // of an embedded struct: its members are the parent's in JSON
	absent []byte // what is written if JSON has no such member; nil: nothing
}

// memberPlan is one member of a JSON object.
type memberPlan struct {
	name string
	slot int
	head []byte
	value
}

// value is how one value is encoded.
type value struct {
	kind    valueKind
	message *Plan  // of a message, or of a list's items
	item    *value // of lists and of the values of maps
	bits    int    // of integers
}

type valueKind uint8

const (
	stringValue valueKind = iota
	bytesValue
	boolValue
	intValue
	messageValue
	timeValue
	microTimeValue
	quantityValue
	intOrStringValue
	rawValue // FieldsV1 and RawExtension: their JSON as it is
	listValue
	mapValue
)

var special = map[reflect.Type]valueKind{
	reflect.TypeFor[metav1.Time]():          timeValue,
	reflect.TypeFor[metav1.MicroTime]():     microTimeValue,
	reflect.TypeFor[apiresource.Quantity](): quantityValue,
	reflect.TypeFor[intstr.IntOrString]():   intOrStringValue,
	reflect.TypeFor[metav1.FieldsV1]():      rawValue,
	reflect.TypeFor[runtime.RawExtension](): rawValue,
}

// messagePlans holds finished *Plan by reflect.Type.
var (
	messagePlans       sync.Map
	makingMessagePlans sync.Mutex
)

// PlanOf returns the plan of a struct type. What is no message is decoded,
// and fails there.
func PlanOf(t reflect.Type) *Plan {
	if p, ok := messagePlans.Load(t); ok {
		return p.(*Plan)
	}
	makingMessagePlans.Lock()
	defer makingMessagePlans.Unlock()
	fresh := planner{}
	p := fresh.message(t)
	if p == nil {
		p = &Plan{decoded: t}
		fresh[t] = p
	}
	for t, p := range fresh {
		messagePlans.Store(t, p)
	}
	return p
}

// planner holds the plans under way, because types may contain themselves.
type planner map[reflect.Type]*Plan

var (
	protobufType    = reflect.TypeFor[message]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

func (pl planner) message(t reflect.Type) *Plan {
	if p, ok := pl[t]; ok {
		return p
	}
	if t.Kind() != reflect.Struct || !reflect.PointerTo(t).Implements(protobufType) {
		return nil
	}
	p := &Plan{}
	pl[t] = p
	if reflect.PointerTo(t).Implements(unmarshalerType) || !pl.addFields(p, t, p) {
		*p = Plan{decoded: t}
	}
	zero := reflect.New(t).Interface().(message)
	p.empty = make([]byte, zero.Size())
	if _, err := zero.MarshalToSizedBuffer(p.empty); err != nil {
		return nil
	}
	return p
}

// addFields reads the fields of t into p; members and slots are noted in top,
// which is p unless t is embedded. It is false if the type has something that
// only decoding understands.
func (pl planner) addFields(p *Plan, t reflect.Type, top *Plan) bool {
	numbers := []int{}
	fields := wirefield.Of(t)
	if len(fields) < t.NumField() {
		return false // protobuf may have a field that JSON has not
	}
	for _, f := range fields {
		number := f.Number
		if number == 0 {
			if f.Go.Type == reflect.TypeFor[metav1.TypeMeta]() {
				continue // the envelope carries kind and apiVersion
			}
			return false
		}
		if f.Packed {
			return false
		}
		field := fieldPlan{head: binary.AppendUvarint(nil, uint64(number)<<3|2)}
		if !f.Tagged {
			if !f.Embedded || f.Go.Type.Kind() != reflect.Struct {
				return false
			}
			field.group = &Plan{}
			if reflect.PointerTo(f.Go.Type).Implements(unmarshalerType) || !pl.addFields(field.group, f.Go.Type, top) {
				return false
			}
		} else {
			v, ok := pl.value(f.Go.Type)
			if !ok {
				return false
			}
			// The type decides how it is encoded: some tags say otherwise.
			field.head = binary.AppendUvarint(nil, uint64(number)<<3|v.wire())
			field.slot = top.slots
			top.slots++
			field.absent = v.absent(f.Go.Type, field.head)
			top.members = append(top.members, memberPlan{name: f.Name, slot: field.slot, head: field.head, value: v})
		}
		at := 0
		for at < len(numbers) && numbers[at] < number {
			at++
		}
		numbers = append(numbers[:at], append([]int{number}, numbers[at:]...)...)
		p.fields = append(p.fields[:at], append([]fieldPlan{field}, p.fields[at:]...)...)
	}
	return true
}

// value returns how values of a type are encoded; false if they cannot be.
func (pl planner) value(t reflect.Type) (value, bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if kind, ok := special[t]; ok {
		return value{kind: kind, message: pl.message(t)}, true
	}
	if t.Kind() != reflect.Struct && (t.Implements(unmarshalerType) || reflect.PointerTo(t).Implements(unmarshalerType) || reflect.PointerTo(t).Implements(protobufType)) {
		return value{}, false
	}
	switch t.Kind() {
	case reflect.String:
		return value{kind: stringValue}, true
	case reflect.Bool:
		return value{kind: boolValue}, true
	case reflect.Int32, reflect.Int64:
		return value{kind: intValue, bits: t.Bits()}, true
	case reflect.Struct:
		message := pl.message(t)
		return value{kind: messageValue, message: message}, message != nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return value{kind: bytesValue}, true
		}
		item, ok := pl.value(t.Elem())
		return value{kind: listValue, item: &item}, ok && item.kind < listValue && item.kind != bytesValue && t.Elem().Kind() != reflect.Pointer
	case reflect.Map:
		item, ok := pl.value(t.Elem())
		return value{kind: mapValue, item: &item}, ok && item.kind < listValue && t.Key().Kind() == reflect.String && t.Elem().Kind() != reflect.Pointer
	}
	return value{}, false
}

// wire is the wire type: 0 for varints, 2 for what has a length.
func (v *value) wire() uint64 {
	if v.kind == boolValue || v.kind == intValue || v.kind == listValue && v.item.wire() == 0 {
		return 0
	}
	return 2
}

// absent is what a field looks like whose member JSON does not have: as in
// proto2, all fields but pointers, lists and maps are written.
func (v value) absent(t reflect.Type, head []byte) []byte {
	switch {
	case t.Kind() == reflect.Pointer, v.kind == bytesValue, v.kind >= listValue:
		return nil
	case v.message != nil:
		out := binary.AppendUvarint(append([]byte(nil), head...), uint64(len(v.message.empty)))
		return append(out, v.message.empty...)
	}
	return append(append([]byte(nil), head...), 0)
}

// message is what generated Kubernetes types offer.
type message interface {
	Size() int
	MarshalToSizedBuffer(data []byte) (int, error)
}
