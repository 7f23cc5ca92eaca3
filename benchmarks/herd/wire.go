package herd

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

var errWire = errors.New("this is not what Kubernetes sends in protobuf")

// Field numbers of the messages that are looked into.
const (
	eventType, eventObject      = 1, 2
	raw                         = 2 // of a runtime.Unknown
	objectMeta, podSpec         = 1, 2
	metaName, metaNamespace     = 1, 3
	metaVersion                 = 6
	specNodeName                = 10
	listMeta, listItems         = 1, 2
	listMetaVersion, statusCode = 2, 6
)

// magic is what an object in protobuf begins with.
const magic = "k8s\x00"

// initialEnd is the annotation of the bookmark that ends a streaming list
// (KEP-3157).
const initialEnd = "k8s.io/initial-events-end"

// object is what is read of one.
type object struct {
	key, version uint64
	pod          []byte // the message, valid as long as what it was read from
}

// change is an event of a watch.
type change struct {
	object
	kind       string // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
	initialEnd bool
	code       int  // of an ERROR
	tooLarge   bool // the ERROR is of a version that is not there yet
}

// field is the first of a number in a message, and its value if it is a varint.
func field(message []byte, number protowire.Number) (value []byte, varint uint64, err error) {
	for len(message) > 0 {
		found, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, 0, errWire
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(found, kind, message)
		if size < 0 {
			return nil, 0, errWire
		}
		if found == number {
			switch kind {
			case protowire.BytesType:
				value, _ = protowire.ConsumeBytes(message)
			case protowire.VarintType:
				varint, _ = protowire.ConsumeVarint(message)
			}
			return value, varint, nil
		}
		message = message[size:]
	}
	return nil, 0, nil
}

// readChange reads an event: a metav1.WatchEvent whose object is a
// runtime.Unknown behind the magic.
func readChange(event []byte) (c change, err error) {
	kind, _, err := field(event, eventType)
	if err != nil {
		return c, err
	}
	c.kind = kindOf(kind)
	envelope, _, err := field(event, eventObject)
	if err != nil {
		return c, err
	}
	// RawExtension has the object's bytes in its first field.
	if envelope, _, err = field(envelope, 1); err != nil {
		return c, err
	}
	unknown, ok := bytes.CutPrefix(envelope, []byte(magic))
	if !ok {
		return c, fmt.Errorf("%w: an object begins with %.8q", errWire, envelope)
	}
	message, _, err := field(unknown, raw)
	if err != nil {
		return c, err
	}
	switch c.kind {
	case "ERROR":
		_, code, err := field(message, statusCode)
		c.code, c.tooLarge = int(code), bytes.Contains(message, []byte(tooLargeCause))
		return c, err
	case "":
		return c, fmt.Errorf("%w: an event of type %.20q", errWire, kind)
	}
	c.object, err = readObject(message)
	c.initialEnd = c.kind == "BOOKMARK" && bytes.Contains(message, []byte(initialEnd))
	return c, err
}

// tooLargeCause is the cause of a Status that says that a version is not there
// yet.
const tooLargeCause = "ResourceVersionTooLarge"

func kindOf(b []byte) string {
	for _, kind := range []string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"} {
		if string(b) == kind {
			return kind
		}
	}
	return ""
}

// readObject reads name and version of a message that begins with ObjectMeta.
func readObject(message []byte) (o object, err error) {
	meta, _, err := field(message, objectMeta)
	if err != nil {
		return o, err
	}
	var name, namespace, version []byte
	for len(meta) > 0 && version == nil {
		number, kind, n := protowire.ConsumeTag(meta)
		if n < 0 {
			return o, errWire
		}
		size := protowire.ConsumeFieldValue(number, kind, meta[n:])
		if size < 0 {
			return o, errWire
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(meta[n:])
			switch number {
			case metaName:
				name = value
			case metaNamespace:
				namespace = value
			case metaVersion:
				version = value
			}
		}
		meta = meta[n+size:]
	}
	o.key, o.pod = Key(namespace, name), message
	if o.version, err = strconv.ParseUint(string(version), 10, 64); err != nil {
		return o, fmt.Errorf("%w: version %q", errWire, version)
	}
	return o, nil
}

// nodeName is where a pod runs.
func (o object) nodeName() (string, error) {
	spec, _, err := field(o.pod, podSpec)
	if err != nil {
		return "", err
	}
	node, _, err := field(spec, specNodeName)
	return string(node), err
}

// items cuts a list in protobuf into its items, in whatever pieces it arrives.
type items struct {
	stage   int // how much of the envelope is behind: nothing, the magic, what stands before the list, the list
	part    []byte
	version uint64 // the list's
}

// cut calls each with every item that piece completes, valid during the call.
func (l *items) cut(piece []byte, each func(item []byte) error) error {
	l.part = append(l.part, piece...)
	rest := l.part
	for {
		n, err := l.next(rest, each)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		rest = rest[n:]
	}
	l.part = l.part[:copy(l.part, rest)]
	return nil
}

// next takes one thing from the start of b, and returns how long it was; 0: it
// is not complete.
func (l *items) next(b []byte, each func([]byte) error) (int, error) {
	const begun, inside, behind = 1, 2, 3
	switch {
	case l.stage == 0 && len(b) < len(magic):
		return 0, nil
	case l.stage == 0:
		l.stage = begun
		if string(b[:len(magic)]) != magic {
			return 0, fmt.Errorf("%w: a list begins with %.8q", errWire, b)
		}
		return len(magic), nil
	case l.stage == behind:
		return len(b), nil
	}
	number, kind, n := protowire.ConsumeTag(b)
	size, m := protowire.ConsumeVarint(b[max(n, 0):])
	switch {
	case n < 0 || m < 0:
		return 0, nil
	case kind != protowire.BytesType && l.stage == inside:
		l.stage = behind
		return len(b), nil
	case kind != protowire.BytesType:
		return 0, fmt.Errorf("%w: field %d of a list is of wire type %d", errWire, number, kind)
	case l.stage == begun && number == raw:
		l.stage = inside
		return n + m, nil
	case l.stage == inside && number > listItems:
		l.stage = behind // the envelope's last fields
		return len(b), nil
	case uint64(len(b)-n-m) < size:
		return 0, nil
	}
	value := b[n+m:][:size]
	whole := n + m + int(size)
	switch {
	case l.stage == inside && number == listMeta:
		version, _, err := field(value, listMetaVersion)
		if err == nil {
			l.version, err = strconv.ParseUint(string(version), 10, 64)
		}
		return whole, err
	case l.stage == inside:
		return whole, each(value)
	}
	return whole, nil
}
