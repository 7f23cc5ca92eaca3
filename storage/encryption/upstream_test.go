package encryption_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/levelwire/levelwire/storage/encryption"
	"github.com/levelwire/levelwire/storage/storagetest"
)

// TestUpstreamReadsAndWritesTheSame: what is stored is what kube-apiserver stores under
// the same key, in both directions.
func TestUpstreamReadsAndWritesTheSame(t *testing.T) {
	for _, provider := range []string{"aescbc", "aesgcm", "secretbox"} {
		t.Run(provider, func(t *testing.T) {
			content := document(keyed(provider, "new=b", "old=a"), identity)
			config, err := encryptionconfig.LoadEncryptionConfig(t.Context(), writeFile(t, content), false, "")
			if err != nil {
				t.Fatal(err)
			}
			upstream := encryptionconfig.StaticTransformers(config.Transformers).TransformerForResource(schema.GroupResource{Resource: "secrets"})
			inner := storagetest.OpenMemory(t)
			store := wrap(t, inner, content, encryption.Options{})
			create(t, store, secretKey, "ours")
			plain, stale, err := upstream.TransformFromStorage(t.Context(), get(t, inner, secretKey).Value, value.DefaultContext(secretKey))
			if err != nil || stale || string(plain) != "ours" {
				t.Errorf("upstream reads ours as %q, stale %v: %v", plain, stale, err)
			}
			theirs, err := upstream.TransformToStorage(t.Context(), []byte("theirs"), value.DefaultContext(secretKey+"2"))
			if err != nil {
				t.Fatal(err)
			}
			create(t, inner, secretKey+"2", string(theirs))
			if item := get(t, store, secretKey+"2"); item.Stale || string(item.Value) != "theirs" {
				t.Errorf("we read theirs as %q, stale %v", item.Value, item.Stale)
			}
		})
	}
}
