package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// Decode makes an object from a value of the store. value must not be modified, and
// neither the object nor the error may share it: a store may only lend it.
type Decode func(key string, value []byte, revision storage.Revision) (*Object, error)

// Decoder returns a Decode that uses the resource's codec. It fails with a
// *storage.UnreadableError for a value that the store cannot decrypt.
func Decoder(res *resource.Resource) Decode {
	return func(key string, value []byte, revision storage.Revision) (*Object, error) {
		json, err := res.WithRevision(value, int64(revision))
		if err != nil {
			return nil, undecodable(value, err)
		}
		attributes, err := res.Attributes(json)
		if err != nil {
			return nil, undecodable(value, err)
		}
		if is := res.Key(attributes.Namespace, attributes.Name); is != key {
			return nil, fmt.Errorf("the object under key %q says that it is %q", key, is)
		}
		return NewObject(key, revision, attributes, json)
	}
}

// undecodable returns why a value could not be decoded: err, unless it is encrypted.
func undecodable(value []byte, err error) error {
	if unreadable := storage.CheckReadable(value); unreadable != nil {
		return unreadable
	}
	return err
}

// maxUndecodable is how many consecutive values of a key that cannot be decoded
// LastDecodable skips.
const maxUndecodable = 32

// ErrUnknownState reports that the store's history does not reach back to a
// state of the key that could be decoded.
var ErrUnknownState = errors.New("the last state that could be decoded is unknown")

// LastDecodable reads the latest state before a revision of prefix+key that can
// be decoded: what caches keep while the present value cannot be. It is nil if
// the key did not exist. It fails with ErrUnknownState if the store's history
// does not reach back far enough, and with storage.ErrCompacted if the history
// does not even reach the revision.
func (d Decode) LastDecodable(ctx context.Context, store storage.Reader, prefix, key string, before storage.Revision) (*Object, error) {
	for n := range maxUndecodable {
		if before <= 1 {
			return nil, nil
		}
		item, err := store.Get(ctx, prefix+key, before-1)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return nil, nil
		case n > 0 && errors.Is(err, storage.ErrCompacted):
			return nil, ErrUnknownState
		case err != nil:
			return nil, err
		}
		if o, err := d(key, item.Value, item.Modified); err == nil {
			o.CreatedRevision, o.SelectorsStableSince = item.Created, item.Modified
			return o, nil
		}
		before = item.Modified
	}
	return nil, ErrUnknownState
}
