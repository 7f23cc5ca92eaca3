package jsonproto

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
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
		raw, err := t.raw()
		if err != nil || len(raw) > 0 && raw[0] != '{' {
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
	if !t.take('[') {
		return ErrUnusual
	}
	if t.take(']') {
		return nil
	}
	for {
		if t.null() {
			return ErrUnusual
		}
		if err := t.value(item, head); err != nil {
			return err
		}
		if t.take(']') {
			return nil
		}
		if !t.take(',') {
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
		if t.null() {
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
	if !t.take('"') {
		return nil, ErrUnusual
	}
	rest := t.in[t.at:]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return nil, ErrUnusual
	}
	if text := rest[:end]; bytes.IndexByte(text, '\\') < 0 {
		t.at += end + 1
		return text, nil
	}
	return t.escaped(rest)
}

// escaped reads the rest of a string that has escapes.
func (t *transcoder) escaped(rest []byte) ([]byte, error) {
	out := t.text[:0]
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			t.at += i + 1
			t.text = out
			return out, nil
		case c != '\\':
			out = append(out, c)
			continue
		case i+1 < len(rest) && rest[i+1] == 'u':
			end := stringLength(rest)
			var text string
			if end < 0 || json.Unmarshal(t.in[t.at-1:t.at+end+1], &text) != nil {
				return nil, ErrUnusual
			}
			t.at += end + 1
			t.text = append(out[:0], text...)
			return t.text, nil
		}
		i++
		if i == len(rest) {
			break
		}
		plain := bytes.IndexByte([]byte(`"\/bfnrt`), rest[i])
		if plain < 0 {
			return nil, ErrUnusual
		}
		out = append(out, "\"\\/\b\f\n\r\t"[plain])
	}
	return nil, ErrUnusual
}

// stringLength is where a string ends whose opening quote has been read.
func stringLength(rest []byte) int {
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}

// raw reads any value and returns its text.
func (t *transcoder) raw() ([]byte, error) {
	t.space()
	from := t.at
	err := t.skip()
	return t.in[from:t.at], err
}

// skip reads any value. It is known to be well-formed: an encoder wrote it.
func (t *transcoder) skip() error {
	t.space()
	depth := 0
	for ; t.at < len(t.in); t.at++ {
		switch t.in[t.at] {
		case '"':
			n := stringLength(t.in[t.at+1:])
			if n < 0 {
				return ErrUnusual
			}
			t.at += n + 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				return nil
			}
			continue
		default:
			continue
		}
		if depth < 0 {
			return nil // the end of what the value is in
		}
		if depth == 0 {
			t.at++
			return nil
		}
	}
	if depth != 0 {
		return ErrUnusual
	}
	return nil
}

func (t *transcoder) bool(head []byte) error {
	t.space()
	t.out = append(t.out, head...)
	switch rest := t.in[t.at:]; {
	case bytes.HasPrefix(rest, []byte("true")):
		t.at += 4
		t.out = append(t.out, 1)
	case bytes.HasPrefix(rest, []byte("false")):
		t.at += 5
		t.out = append(t.out, 0)
	default:
		return ErrUnusual
	}
	return nil
}

func (t *transcoder) int(bits int) (int64, error) {
	t.space()
	from := t.at
	for t.at < len(t.in) && (t.in[t.at] >= '0' && t.in[t.at] <= '9' || t.in[t.at] == '-') {
		t.at++
	}
	n, err := strconv.ParseInt(string(t.in[from:t.at]), 10, bits)
	if err != nil || t.at < len(t.in) && (t.in[t.at] == '.' || t.in[t.at]|0x20 == 'e') {
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
	t.space()
	from := t.at
	text, err := t.string()
	if err != nil {
		return err
	}
	moment, ok := parseMoment(text, length)
	if !ok {
		t.at = from
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
	t.space()
	from := t.at
	text, err := t.string()
	if err != nil || !canonicalQuantity(text) {
		t.at = from
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
	t.space()
	var n int64
	var text []byte
	kind := byte(0)
	var err error
	if t.at < len(t.in) && t.in[t.at] == '"' {
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
