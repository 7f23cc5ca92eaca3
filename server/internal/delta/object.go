package delta

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

const (
	// Header of a watch request asks for deltas, and of its answer says that the events
	// carry them. Its value is Zstd. Proxies pass it on, and servers that do not know it
	// answer as ever.
	Header = "Levelwire-Deltas"
	// Zstd is the value of Header.
	Zstd = "zstd"
)

// prefix is how a delta begins in place of the object of an event.
const prefix = `{"kind":"ObjectDelta","apiVersion":"levelwire.io/v1","metadata":{"resourceVersion":"`

// digestBytes is how much of the SHA-256 of an object a delta carries: it is to detect
// mistakes, not forgers, for the stream comes over an authenticated connection.
const digestBytes = 8

// Reference names one state of one object.
type Reference struct {
	Key             string // "namespace/name", or "name" for a kind without namespaces
	ResourceVersion int64  // 0: no object
}

// Delta is one object as its difference from another.
type Delta struct {
	Base    Reference // of the zero value: the object is compressed by itself
	Digest  string    // of the object
	Payload []byte
}

// ErrBase means that a receiver does not have the base of a delta, or another one than the
// sender. The receiver asks again without deltas.
var ErrBase = errors.New("the base of a delta is not what the sender has used")

// Head returns how the delta of an object from a base begins: two deltas with the same head
// are equal if their objects and bases are.
func Head(object, base Reference, namespace, name string) []byte {
	head := strconv.AppendInt([]byte(prefix), object.ResourceVersion, 10)
	head = append(appendString(append(head, `","name":`...), name), `,"namespace":`...)
	head = append(appendString(head, namespace), '}')
	if base.ResourceVersion != 0 {
		head = append(appendString(append(head, `,"base":{"key":`...), base.Key), `,"resourceVersion":"`...)
		head = append(strconv.AppendInt(head, base.ResourceVersion, 10), `"}`...)
	}
	return append(head, `,"sha256":"`...)
}

// appendString appends a JSON string.
func appendString(dst []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // no string is without one
	}
	return append(dst, quoted...)
}

// Encode returns a delta, as JSON that takes the place of the object in an event. base is
// the JSON of what head names as the base, or empty.
func Encode(head, base, object []byte) ([]byte, error) {
	payload, err := compress(make([]byte, 0, 1024), base, object)
	if err != nil {
		return nil, err
	}
	digest := digestOf(object)
	out := make([]byte, 0, len(head)+len(digest)+base64.StdEncoding.EncodedLen(len(payload))+16)
	out = append(append(append(out, head...), digest...), `","zstd":"`...)
	out = base64.StdEncoding.AppendEncode(out, payload)
	return append(out, `"}`...), nil
}

func digestOf(object []byte) string {
	sum := sha256.Sum256(object)
	return hex.EncodeToString(sum[:digestBytes])
}

// Is reports whether the object of an event is a delta.
func Is(object []byte) bool { return bytes.HasPrefix(object, []byte(prefix)) }

// Parse reads a delta.
func Parse(object []byte) (Delta, error) {
	var d struct {
		Base struct {
			Key             string `json:"key"`
			ResourceVersion int64  `json:"resourceVersion,string"`
		} `json:"base"`
		SHA256 string `json:"sha256"`
		Zstd   []byte `json:"zstd"`
	}
	if err := json.Unmarshal(object, &d); err != nil {
		return Delta{}, fmt.Errorf("a delta that cannot be read: %w", err)
	}
	return Delta{Base: Reference{d.Base.Key, d.Base.ResourceVersion}, Digest: d.SHA256, Payload: d.Zstd}, nil
}

// Apply returns the object. base is the JSON of what Base names, or empty. An error matches
// ErrBase.
func (d Delta) Apply(base []byte) ([]byte, error) {
	object, err := decompress(base, d.Payload)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBase, err)
	}
	if digest := digestOf(object); digest != d.Digest {
		return nil, fmt.Errorf("%w: the digest of the object is %s, not %s", ErrBase, digest, d.Digest)
	}
	return object, nil
}
