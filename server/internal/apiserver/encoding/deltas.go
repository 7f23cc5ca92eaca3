package encoding

import (
	"bytes"
	"context"
	"net/http"

	"github.com/levelwire/levelwire/server/internal/delta"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// UseDeltas has the events of a watch carry deltas, if its client asks for them and they can
// be made: of whole objects in JSON that no webhook converts. It notes in the header of the
// answer that they are. The objects that the watch then remembers are within the budget; it
// is left to the caller to close what is returned, when the watch has ended.
func (f *EventEncoder) UseDeltas(asked, answer http.Header, budget delta.Budget) *delta.Recent {
	form := f.encoder.form
	if asked.Get(delta.Header) != delta.Zstd || form.Media != JSON || form.As != AsObject || form.Pretty || f.encoder.res.FromStorageBatch != nil {
		return nil
	}
	answer.Set(delta.Header, delta.Zstd)
	f.recent = &delta.Recent{Budget: budget}
	return f.recent
}

// delta returns the object of an event as a delta. It is made once for all watches, from the
// base of the first one that sends it. Watches with another base, of which a client could make
// any number, get the whole object, and so do those that begin with the object, for which no
// delta is kept.
func (f *EventEncoder) delta(ctx context.Context, e watchcache.Event) ([]byte, error) {
	shown, err := f.encoder.json(ctx, e.Object)
	if err != nil {
		return nil, err
	}
	ref := delta.Reference{Key: e.Object.Key, ResourceVersion: int64(e.Object.Revision)}
	base, content, err := f.baseOf(ctx, e)
	if err != nil {
		return nil, err
	}
	if e.Type == watchcache.Added {
		f.recent.Add(ref, shown, e.Object.Attributes.Labels)
	}
	if f.encoder.noCache || len(shown) > delta.MaxObjectBytes {
		return shown, nil
	}
	head := delta.Head(ref, base, e.Object.Attributes.Namespace, e.Object.Attributes.Name)
	made, err := f.encoder.formOf(ctx, e.Object, f.encoder.ids.delta, func(*watchcache.Object) ([]byte, error) {
		f.encoder.countEncode("delta")
		return delta.Encode(head, content, shown)
	})
	if err != nil || bytes.HasPrefix(made, head) {
		return made, err
	}
	return shown, nil
}

// baseOf returns what the client has that the object of an event is most likely like.
func (f *EventEncoder) baseOf(ctx context.Context, e watchcache.Event) (base delta.Reference, content []byte, err error) {
	if e.Type == watchcache.Added {
		base, content = f.recent.Like(e.Object.Attributes.Labels)
		return base, content, nil
	}
	if e.Previous == nil {
		return base, nil, nil
	}
	content, err = f.encoder.json(ctx, e.Previous)
	return delta.Reference{Key: e.Previous.Key, ResourceVersion: int64(e.Previous.Revision)}, content, err
}
