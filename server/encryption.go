package server

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/apiserver/health"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache/caches"
	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/encryption"
)

// encrypt returns a store that encrypts the values of store as configured, or store.
func (c *Config) encrypt(store storage.Store) (storage.Store, error) {
	if c.encryption == nil {
		return store, nil
	}
	return encryption.New(store, c.encryption, encryption.Options{Resource: storedResources(), Logger: c.Logger})
}

// storedResources returns a function that finds the resource whose objects are stored
// under a key. Tombstones have the labels, fields and names of objects of all.
func storedResources() func(key string) schema.GroupResource {
	byPrefix := map[string]schema.GroupResource{}
	for _, res := range builtin.Table().All() {
		stored := res.Stored()
		byPrefix[strings.TrimPrefix(stored.StorePrefix, resourcePrefix)] = stored.GroupResource()
	}
	return func(key string) schema.GroupResource {
		rest, ok := strings.CutPrefix(key, resourcePrefix)
		if !ok {
			if strings.HasPrefix(key, tombstone.Prefix) {
				return encryption.AllResources
			}
			return schema.GroupResource{}
		}
		first := strings.IndexByte(rest, '/') + 1
		if resource, ok := byPrefix[rest[:first]]; ok {
			return resource
		}
		second := first + strings.IndexByte(rest[first:], '/') + 1
		if resource, ok := byPrefix[rest[:second]]; ok || second <= first || first == 0 {
			return resource
		}
		// Custom resources: GROUP/PLURAL/.
		return schema.GroupResource{Group: rest[:first-1], Resource: rest[first : second-1]}
	}
}

// encryptionOf returns the part of a store that encrypts; nil if there is none.
func encryptionOf(store storage.Store) *encryption.Store {
	encrypted, _ := store.(*encryption.Store)
	return encrypted
}

// encryptionFlag is the flag of the encryption configuration.
const encryptionFlag = "encryption-provider-config"

// watchEncryption reads the encryption configuration again when it changes, and then has
// the caches read what they could not decrypt before. A change waits for KMS plugins, and
// for the caches, until ctx ends.
func (s *Server) watchEncryption(ctx context.Context, store storage.Store, caches *caches.Set) error {
	encrypted := encryptionOf(store)
	if encrypted == nil || !s.config.EncryptionProviderConfigAutomaticReload {
		return nil
	}
	filling := true // the caches are empty still
	err := s.identity.files.WatchSeparately(encryptionFlag, s.config.EncryptionProviderConfig, func(content []byte) error {
		changed, err := encrypted.Reload(ctx, content)
		if err != nil || !changed || filling {
			return err
		}
		if _, err := caches.Feed.Check(ctx); err != nil && ctx.Err() == nil {
			s.config.Logger.Warn("comparing the caches with the store after a change of the encryption configuration failed", "error", err)
		}
		return nil
	})
	filling = false
	return err
}

// encryptionHealth are the health checks of a store that encrypts.
func encryptionHealth(store storage.Store) []health.Check {
	encrypted := encryptionOf(store)
	if encrypted == nil {
		return nil
	}
	return []health.Check{{Name: "kms-providers", Check: func(context.Context) error { return encrypted.Check() }}}
}
