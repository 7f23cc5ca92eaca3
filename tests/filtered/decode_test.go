package filtered

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// objectList is a page of a list.
type objectList struct {
	version int64
	next    string
	objects map[string]got
}

func (l *objectList) add(o metav1.Object) {
	l.objects[o.GetNamespace()+"/"+o.GetName()] = got{versionOf(o.GetResourceVersion()), o.GetAnnotations()[valueKey]}
}

func versionOf(version string) int64 {
	n, _ := strconv.ParseInt(version, 10, 64) // 0 is no version at all
	return n
}

func decodeList(from io.Reader, form string) (l objectList, err error) {
	l.objects = map[string]got{}
	data, err := io.ReadAll(from)
	if err != nil {
		return l, err
	}
	if form == asProtobuf {
		var list corev1.SecretList
		if err := unwrap(data, &list); err != nil {
			return l, err
		}
		l.version, l.next = versionOf(list.ResourceVersion), list.Continue
		for i := range list.Items {
			l.add(&list.Items[i])
		}
		return l, nil
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(data, &list); err != nil {
		return l, err
	}
	l.version, l.next = versionOf(list.ResourceVersion), list.Continue
	for i := range list.Items {
		l.add(&list.Items[i])
	}
	return l, nil
}

// unwrap decodes what Kubernetes' protobuf begins with four bytes and a type.
func unwrap(data []byte, into interface{ Unmarshal([]byte) error }) error {
	const magic = "k8s\x00"
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return fmt.Errorf("no protobuf: %q", data)
	}
	var wrapped runtime.Unknown
	if err := wrapped.Unmarshal(data[len(magic):]); err != nil {
		return err
	}
	return into.Unmarshal(wrapped.Raw)
}

// decoder returns what reads the next event of a stream.
func decoder(from io.Reader, form string) func() (item, error) {
	if form == asProtobuf {
		return func() (item, error) { return readProtobufEvent(from) }
	}
	d := json.NewDecoder(from)
	return func() (item, error) {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return item{}, err
		}
		return decodeJSONEvent(raw)
	}
}

func decodeJSONEvent(data []byte) (item, error) {
	var e struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return item{}, err
	}
	if e.Type == "ERROR" {
		var status metav1.Status
		return item{}, errors.Join(json.Unmarshal(e.Object, &status), &refusedError{int(status.Code), status.Message})
	}
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(e.Object, &o); err != nil {
		return item{}, err
	}
	return itemOf(e.Type, &o), nil
}

func readProtobufEvent(from io.Reader) (item, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return item{}, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(from, frame); err != nil {
		return item{}, err
	}
	var e metav1.WatchEvent
	if err := e.Unmarshal(frame); err != nil {
		return item{}, err
	}
	if e.Type == "ERROR" {
		var status metav1.Status
		return item{}, errors.Join(unwrap(e.Object.Raw, &status), &refusedError{int(status.Code), status.Message})
	}
	var o corev1.Secret
	if err := unwrap(e.Object.Raw, &o); err != nil {
		return item{}, err
	}
	return itemOf(e.Type, &o), nil
}

func itemOf(kind string, o metav1.Object) item {
	i := item{what: changedObject, revision: versionOf(o.GetResourceVersion()), value: o.GetAnnotations()[valueKey]}
	if kind == "BOOKMARK" {
		i.what, i.end = bookmark, o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
		return i
	}
	i.changed = event{kind, o.GetNamespace() + "/" + o.GetName(), i.revision}
	return i
}
