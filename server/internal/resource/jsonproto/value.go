package jsonproto

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"reflect"
	"slices"
	"strconv"
	"time"

	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// value reads one value, which is not null, and writes it with its tag.
func (t *transcoder) value(v *value, head []byte) error {
	switch v.kind {
	case stringValue:
		text, err := t.string()
		if err != nil {
			return err
		}
		t.lengthDelimited(head, len(text))
		t.out = append(t.out, text...)
		return nil
	case bytesValue:
		return t.base64(head)
	case boolValue:
		return t.bool(head)
	case intValue:
		n, err := t.int(v.bits)
		t.out = binary.AppendUvarint(append(t.out, head...), uint64(n))
		return err
	case messageValue:
		return t.message(v.message, head)
	case timeValue:
		return t.time(head, len("2006-01-02T15:04:05Z"), reflect.TypeFor[metav1.Time]())
	case microTimeValue:
		return t.time(head, len("2006-01-02T15:04:05.000000Z"), reflect.TypeFor[metav1.MicroTime]())
	case quantityValue:
		return t.quantity(head)
	case intOrStringValue:
		return t.intOrString(head)
	case rawValue:
		raw, err := t.skip()
		if err != nil || raw[0] != '{' {
			return ErrUnusual
		}
		t.lengthDelimited(head, FieldSize(len(raw)))
		t.out = AppendField(t.out, 1, raw)
		return nil
	case listValue:
		return t.list(v.item, head)
	}
	return t.mapping(v.item, head)
}

func (t *transcoder) list(item *value, head []byte) error {
	if !t.scan.Take('[') {
		return ErrUnusual
	}
	if t.scan.Take(']') {
		return nil
	}
	for {
		if t.scan.Literal("null") {
			return ErrUnusual
		}
		if err := t.value(item, head); err != nil {
			return err
		}
		if t.scan.Take(']') {
			return nil
		}
		if !t.scan.Take(',') {
			return ErrUnusual
		}
	}
}

// mapping writes an entry for each member. Their order must be that of their
// names, in which both encodings have it.
func (t *transcoder) mapping(item *value, head []byte) error {
	last, first := span{}, true // of the name before, in the output
	return t.object(func(name []byte) error {
		if !first && bytes.Compare(t.out[last.start:last.end], name) >= 0 {
			return ErrUnusual
		}
		first = false
		from := len(t.out)
		t.out = AppendField(t.out, 1, name)
		last = span{len(t.out) - len(name), len(t.out)}
		if t.scan.Literal("null") {
			return ErrUnusual
		}
		if err := t.value(item, mapValueHeads[item.wire()/2]); err != nil {
			return err
		}
		// The length comes first, and is known now.
		var space [12]byte
		entry := binary.AppendUvarint(append(space[:0], head...), uint64(len(t.out)-from))
		t.out = slices.Insert(t.out, from, entry...)
		last.start += len(entry)
		last.end += len(entry)
		return nil
	})
}

// mapValueHeads are the tags of the values of maps: of varints, and of what
// has a length.
var mapValueHeads = [2][]byte{{2 << 3}, {2<<3 | 2}}

// string reads a string. The result is valid until the next one is read.
func (t *transcoder) string() ([]byte, error) {
	quoted, err := t.scan.String()
	if err != nil {
		return nil, ErrUnusual
	}
	if !quoted.Escaped {
		return quoted.Raw(), nil
	}
	if t.text, err = quoted.Unescape(t.text[:0]); err != nil {
		return nil, ErrUnusual
	}
	return t.text, nil
}

// skip reads any value and returns its text. It is known to be well-formed: an
// encoder wrote it.
func (t *transcoder) skip() ([]byte, error) {
	raw, err := t.scan.Skip()
	if err != nil {
		return nil, ErrUnusual
	}
	return raw, nil
}

func (t *transcoder) bool(head []byte) error {
	t.out = append(t.out, head...)
	switch {
	case t.scan.Literal("true"):
		t.out = append(t.out, 1)
	case t.scan.Literal("false"):
		t.out = append(t.out, 0)
	default:
		return ErrUnusual
	}
	return nil
}

func (t *transcoder) int(bits int) (int64, error) {
	n, ok := t.scan.Int(bits)
	if !ok {
		return 0, ErrUnusual
	}
	return n, nil
}

func (t *transcoder) base64(head []byte) error {
	text, err := t.string()
	if err != nil || bytes.ContainsAny(text, "\r\n") {
		return ErrUnusual
	}
	data, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return ErrUnusual
	}
	t.lengthDelimited(head, len(data))
	t.out = append(t.out, data...)
	return nil
}

// time reads a moment as our encoder writes it, of the given length; all
// others are decoded.
func (t *transcoder) time(head []byte, length int, typ reflect.Type) error {
	from := t.scan.Pos
	text, err := t.string()
	if err != nil {
		return err
	}
	moment, ok := parseMoment(text, length)
	if !ok {
		t.scan.Pos = from
		return t.decoded(typ, head)
	}
	var space [24]byte
	stamp := binary.AppendUvarint(append(space[:0], 1<<3), uint64(moment.Unix()))
	nanos := 0
	if length > 20 {
		nanos = moment.Nanosecond()
	}
	stamp = binary.AppendUvarint(append(stamp, 2<<3), uint64(nanos))
	t.lengthDelimited(head, len(stamp))
	t.out = append(t.out, stamp...)
	return nil
}

// parseMoment reads the days that every month has, of years that have four
// digits and are after the epoch; RFC 3339 in UTC with none or six decimals.
func parseMoment(text []byte, length int) (time.Time, bool) {
	const pattern = "0000-00-00T00:00:00.000000Z"
	if len(text) != length || text[len(text)-1] != 'Z' {
		return time.Time{}, false
	}
	var numbers [7]int
	part := 0
	for i, c := range text[:len(text)-1] {
		switch {
		case pattern[i] != '0':
			if c != pattern[i] {
				return time.Time{}, false
			}
			part++
		case c < '0' || c > '9':
			return time.Time{}, false
		default:
			numbers[part] = numbers[part]*10 + int(c-'0')
		}
	}
	year, month, day, hour, minute, second := numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]
	if year < 1971 || month < 1 || month > 12 || day < 1 || day > 28 && (month == 2 || day > 30) || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, numbers[6]*1000, time.UTC), true
}

// quantity reads a quantity; what is not in its canonical form for certain is
// decoded.
func (t *transcoder) quantity(head []byte) error {
	from := t.scan.Pos
	text, err := t.string()
	if err != nil || !canonicalQuantity(text) {
		t.scan.Pos = from
		return t.decoded(reflect.TypeFor[apiresource.Quantity](), head)
	}
	t.lengthDelimited(head, FieldSize(len(text)))
	t.out = AppendField(t.out, 1, text)
	return nil
}

// canonicalQuantity recognises small whole numbers, alone or with one of the
// suffixes that are most used, which no larger suffix would shorten.
func canonicalQuantity(text []byte) bool {
	digits := 0
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	if digits == 0 || digits > 6 || text[0] == '0' && (digits > 1 || len(text) > 1) {
		return false
	}
	n, _ := strconv.Atoi(string(text[:digits])) // digits only
	switch string(text[digits:]) {
	case "":
		return n == 0 || n%1000 != 0
	case "m", "k", "M", "G":
		return n%1000 != 0
	case "Ki", "Mi", "Gi":
		return n%1024 != 0
	}
	return false
}

func (t *transcoder) intOrString(head []byte) error {
	var n int64
	var text []byte
	kind := byte(0)
	var err error
	if t.scan.Peek() == '"' {
		kind = 1
		text, err = t.string()
	} else {
		n, err = t.int(32)
	}
	if err != nil {
		return err
	}
	var space [16]byte
	number := binary.AppendUvarint(append(space[:0], 1<<3, kind, 2<<3), uint64(n))
	t.lengthDelimited(head, len(number)+FieldSize(len(text)))
	t.out = AppendField(append(t.out, number...), 3, text)
	return nil
}
