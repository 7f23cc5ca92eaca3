package encryption

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/levelwire/levelwire/storage"
)

// key is a key of a provider. The provider identity has one without prefix and
// transformer.
type key struct {
	prefix      string // of the values that it has encrypted
	transformer value.Transformer
	worked      atomic.Bool // it has decrypted a value
}

// rules are the keys of each resource, as one reading of the file has them. They do not
// change.
type rules struct {
	config     *Config
	byResource map[schema.GroupResource][]*key
	plugins    []*plugin
}

// newRules makes the keys of a configuration. KMS plugins are started by start.
func newRules(config *Config, start func(*apiserver.KMSConfiguration) (*plugin, error)) (*rules, error) {
	r := &rules{config: config, byResource: map[schema.GroupResource][]*key{}}
	var writing, all []*key // of AllResources
	for _, entry := range config.resources {
		keys, err := newKeys(entry.Providers, func(config *apiserver.KMSConfiguration) (value.Transformer, error) {
			p, err := start(config)
			if err != nil {
				return nil, err
			}
			r.plugins = append(r.plugins, p)
			return p.transformer, nil
		})
		if err != nil {
			r.close()
			return nil, fmt.Errorf("%s: %w", config.path, err)
		}
		for _, name := range entry.Resources {
			resource := schema.ParseGroupResource(name)
			r.byResource[resource] = append(r.byResource[resource], keys...)
		}
		if writing == nil && keys[0].transformer != nil {
			writing = keys[:1]
		}
		all = append(all, keys...)
	}
	// Values with parts of all resources are written with the key of "*.*", or else of
	// the first entry that encrypts, and all keys read them.
	if first := r.byResource[AllResources]; len(first) > 0 && first[0].transformer != nil {
		writing = first[:1]
	}
	r.byResource[partsOfAll] = append(append(writing[:len(writing):len(writing)], all...), &key{})
	return r, nil
}

// partsOfAll is AllResources in rules.byResource, where that is "*.*". It is no name of
// a resource.
var partsOfAll = schema.GroupResource{Group: "/"}

// of returns the keys of a resource, the first being for writes; none if its values are
// stored as they are.
func (r *rules) of(resource schema.GroupResource) []*key {
	switch resource {
	case schema.GroupResource{}:
		return nil
	case AllResources:
		return r.byResource[partsOfAll]
	}
	if keys, ok := r.byResource[resource]; ok {
		return keys
	}
	if keys, ok := r.byResource[schema.GroupResource{Group: resource.Group, Resource: "*"}]; ok {
		return keys
	}
	return r.byResource[AllResources]
}

func (r *rules) close() {
	for _, p := range r.plugins {
		p.close()
	}
}

// encrypt returns the stored form of a value.
func encrypt(ctx context.Context, keys []*key, at string, plain []byte) ([]byte, error) {
	if len(keys) == 0 || keys[0].transformer == nil {
		return plain, nil
	}
	k := keys[0]
	sealed, err := k.transformer.TransformToStorage(ctx, plain, value.DefaultContext(at))
	if err != nil {
		return nil, unavailable(ctx, fmt.Errorf("%s cannot encrypt: %w", k.prefix, err))
	}
	stored := make([]byte, 0, len(k.prefix)+len(sealed))
	return append(append(stored, k.prefix...), sealed...), nil
}

// decrypt returns the value of a stored form, and whether a write would store it in
// another form. Every key with the prefix of the value is tried, because keys of two
// entries may have the same name; used is the one that has read it, or that failed. It fails
// with an *storage.UnreadableError or, if a plugin does not answer, with
// storage.ErrUnavailable.
func decrypt(ctx context.Context, keys []*key, at string, stored []byte) (plain []byte, stale bool, used *key, err error) {
	if len(keys) == 0 {
		return stored, false, nil, nil
	}
	var failed error
	worked := false
	encrypted := bytes.HasPrefix(stored, []byte(prefixEncrypted))
	for i, k := range keys {
		if k.transformer == nil {
			if !encrypted {
				return stored, i > 0, k, nil
			}
			continue
		}
		sealed, ok := bytes.CutPrefix(stored, []byte(k.prefix))
		if !ok {
			continue
		}
		plain, stale, err := k.transformer.TransformFromStorage(ctx, sealed, value.DefaultContext(at))
		if err == nil {
			k.worked.Store(true)
			return plain, stale || i > 0, k, nil
		}
		if failed == nil || errors.Is(err, storage.ErrUnavailable) {
			failed, used = err, k
		}
		worked = worked || k.worked.Load()
	}
	if errors.Is(failed, storage.ErrUnavailable) || ctx.Err() != nil {
		return nil, false, used, unavailable(ctx, failed)
	}
	return nil, false, used, &unreadable{prefix: storage.EncryptedBy(stored), cause: failed, damaged: worked}
}

// prefixEncrypted begins all encrypted values.
const prefixEncrypted = "k8s:enc:"

// unavailable makes an error one of a storage that does not answer, unless ctx has
// ended.
func unavailable(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, storage.ErrUnavailable):
		return err
	}
	return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
}

// unreadable is why no key reads a value.
type unreadable struct {
	prefix  string // of the value; "" if it is not encrypted
	cause   error  // of the key with that prefix; nil if there is none
	damaged bool   // that key has decrypted other values
}

func (e *unreadable) Error() string { return e.reason("").Reason }

// reason returns the error for readers, with the file of the configuration.
func (e *unreadable) reason(path string) *storage.UnreadableError {
	provider, name := splitPrefix(e.prefix)
	switch {
	case e.prefix == "":
		return &storage.UnreadableError{Reason: fmt.Sprintf("the value is not encrypted, and %s has no provider identity for its resource", path)}
	case e.cause == nil:
		return &storage.UnreadableError{Reason: fmt.Sprintf("the value is encrypted with %q, and %s has no provider %s with the key %q for its resource", e.prefix, path, provider, name)}
	case e.damaged:
		return &storage.UnreadableError{Damaged: true, Reason: fmt.Sprintf("the value, encrypted with %q, is damaged or was moved from another key: %v", e.prefix, e.cause)}
	}
	return &storage.UnreadableError{Reason: fmt.Sprintf("the value is encrypted with %q, but the key %q of provider %s in %s does not decrypt it: is it another key of the same name? (%v)", e.prefix, name, provider, path, e.cause)}
}

// splitPrefix returns the provider and the key's name of a prefix such as
// "k8s:enc:aesgcm:v1:key1:".
func splitPrefix(prefix string) (provider, name string) {
	parts := strings.Split(strings.TrimPrefix(prefix, prefixEncrypted), ":")
	if provider = parts[0]; len(parts) > 2 {
		name = parts[2]
	}
	return provider, name
}
