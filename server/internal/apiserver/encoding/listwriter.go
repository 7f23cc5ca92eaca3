package encoding

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// listWriter writes a page in the negotiated form, item by item.
type listWriter struct {
	answer   *Answer
	encoder  Encoder
	include  metav1.IncludeObjectPolicy
	custom   bool      // items carry kind and apiVersion
	itemHead string    // of a PartialObjectMetadata
	out      io.Writer // where JSON goes: the answer, perhaps through an indenter
	scratch  []byte    // of the item that is being written
}

// WriteList answers with a page.
func WriteList(w http.ResponseWriter, r *http.Request, encoder Encoder, include metav1.IncludeObjectPolicy, page read.Page) error {
	defer request.MeasureAnswer(w).End()
	a := NewAnswer(w, r, encoder.form.ContentType())
	l := listWriter{answer: a, encoder: encoder, include: include}
	err := l.write(page)
	if err == nil {
		err = a.Finish()
	}
	return a.Release(err)
}

func (l *listWriter) write(p read.Page) error {
	l.out, l.itemHead, l.custom = l.answer, metadataHead(l.encoder.form.MetaVersion), isCustom(l.encoder.res)
	if l.encoder.form.Media == Protobuf {
		return l.writeProtobuf(p)
	}
	if l.encoder.form.Media == CBOR {
		return l.writeCBOR(p)
	}
	meta, err := json.Marshal(p.Meta)
	if err != nil {
		return fmt.Errorf("encode list metadata: %w", err)
	}
	if l.encoder.form.Media == YAML {
		return l.writeYAML(p, meta)
	}
	if l.encoder.form.Pretty {
		l.out = &indenter{out: l.answer}
	}
	return l.writeJSON(p, meta)
}

// writeJSON joins the head, the items and the tail.
func (l *listWriter) writeJSON(p read.Page, meta []byte) error {
	head, err := l.head(meta)
	if err != nil {
		return err
	}
	if p.Runs != nil && l.encoder.form.As == AsObject {
		l.answer.expect(len(head) + atLeast(p.Runs, CompressFrom))
	}
	if _, err := l.out.Write(head); err != nil {
		return err
	}
	if ids, ok := l.encoder.itemBlocks(); ok && p.Runs != nil && !l.encoder.form.Pretty {
		err = l.writeRuns(p.Runs, ids, commaBlock)
	} else {
		err = l.writeItems(p.Items)
	}
	if err != nil {
		return err
	}
	_, err = l.out.Write([]byte(tableTail))
	return err
}

// atLeast adds up how long the JSON of runs is until it is more than enough.
func atLeast(runs iter.Seq[watchcache.Run], enough int) int {
	size := 0
	for run := range runs {
		if size += itemsSize(run); size > enough {
			break
		}
	}
	return size
}

func (l *listWriter) writeItems(items iter.Seq[*watchcache.Object]) error {
	item := l.itemWriter()
	first := true
	for object := range items {
		if !first {
			if _, err := l.out.Write(comma); err != nil {
				return err
			}
		}
		first = false
		if err := item(object); err != nil {
			return err
		}
	}
	return nil
}

var comma, brace, closingBrace = []byte{','}, []byte{'{'}, []byte{'}'}

// head is everything before the first item.
func (l *listWriter) head(meta []byte) ([]byte, error) {
	if l.encoder.form.As == AsTable {
		return appendTableHead(nil, l.encoder.form.MetaVersion, meta, l.encoder.res.Columns)
	}
	gvk := l.listKind()
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, gvk.Kind, gvk.GroupVersion().String(), meta), nil
}

func (l *listWriter) listKind() schema.GroupVersionKind {
	if l.encoder.form.As == AsMetadata {
		return schema.GroupVersionKind{Group: "meta.k8s.io", Version: l.encoder.form.MetaVersion, Kind: "PartialObjectMetadataList"}
	}
	return l.encoder.res.GroupVersion().WithKind(l.encoder.res.ListKind)
}

// itemWriter returns the function that writes one item, chosen once per list.
func (l *listWriter) itemWriter() func(*watchcache.Object) error {
	switch {
	case l.encoder.form.As == AsTable:
		return l.writeRow
	case l.encoder.form.As == AsMetadata:
		return l.writeMetadata
	case l.custom:
		return l.writeWhole
	}
	prefix := len(l.encoder.res.Prefix())
	return func(o *watchcache.Object) error {
		shown, err := l.encoder.readJSON(l.answer.r.Context(), o, &l.scratch)
		if err != nil {
			return err
		}
		if _, err := l.out.Write(brace); err != nil {
			return err
		}
		_, err = l.out.Write(shown[prefix:])
		return err
	}
}

func (l *listWriter) writeWhole(o *watchcache.Object) error {
	shown, err := l.encoder.readJSON(l.answer.r.Context(), o, &l.scratch)
	if err == nil {
		_, err = l.out.Write(shown)
	}
	return err
}

// writeMetadata copies an object's metadata into another envelope, piece by
// piece.
func (l *listWriter) writeMetadata(o *watchcache.Object) error {
	shown, err := l.encoder.readJSON(l.answer.r.Context(), o, &l.scratch)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(l.out, l.itemHead); err != nil {
		return err
	}
	if _, err := l.out.Write(metadataOf(l.encoder.res, shown)); err != nil {
		return err
	}
	_, err = l.out.Write(closingBrace)
	return err
}

func (l *listWriter) writeRow(o *watchcache.Object) error {
	row, err := l.encoder.row(l.answer.r.Context(), o, l.include)
	if err == nil {
		_, err = l.out.Write(row)
	}
	return err
}

// row makes a table row anew: its ages are those of this moment.
func (p Encoder) row(ctx context.Context, o *watchcache.Object, include metav1.IncludeObjectPolicy) ([]byte, error) {
	p.countEncode("table row")
	obj, err := p.decode(ctx, o)
	if err != nil {
		return nil, err
	}
	shown, err := p.json(ctx, o)
	if err != nil {
		return nil, err
	}
	return appendRow(nil, p.res, p.form.MetaVersion, include, obj, shown)
}

// writeYAML writes the items one by one, as a list of any length would be too
// much to convert at once.
func (l *listWriter) writeYAML(p read.Page, meta []byte) error {
	head, err := l.head(meta)
	if err != nil {
		return err
	}
	items := []byte("items")
	if l.encoder.form.As == AsTable {
		items = []byte("rows")
	}
	// What comes last in the head opens the items.
	head = append(bytes.TrimSuffix(head, fmt.Appendf(nil, `,%q:[`, items)), closingBrace...)
	if head, err = yaml.JSONToYAML(head); err != nil {
		return err
	}
	if _, err := l.out.Write(append(append(head, items...), ':')); err != nil {
		return err
	}
	item := l.encoder.itemAppender(l.answer.r.Context())
	if l.encoder.form.As == AsTable {
		item = func(_ []byte, o *watchcache.Object) ([]byte, error) {
			return l.encoder.row(l.answer.r.Context(), o, l.include)
		}
	}
	empty := true
	for object := range p.Items {
		empty = false
		shown, err := item(nil, object)
		if err != nil {
			return err
		}
		if err := l.writeYAMLItem(shown); err != nil {
			return err
		}
	}
	tail := "\n"
	if empty {
		tail = " []\n"
	}
	_, err = io.WriteString(l.out, tail)
	return err
}

// writeYAMLItem writes one item behind a dash, its lines indented below it.
func (l *listWriter) writeYAMLItem(shown []byte) error {
	text, err := yaml.JSONToYAML(shown)
	if err != nil {
		return err
	}
	text = bytes.TrimSuffix(text, []byte{'\n'})
	text = bytes.ReplaceAll(text, []byte{'\n'}, []byte("\n  "))
	_, err = l.out.Write(append([]byte("\n- "), text...))
	return err
}
