package encryption

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/storage/value"
	aestransformer "k8s.io/apiserver/pkg/storage/value/encrypt/aes"
	"k8s.io/apiserver/pkg/storage/value/encrypt/secretbox"
)

// AllResources is the resource of keys whose values hold parts of objects of several
// resources. They are encrypted if any resource is.
var AllResources = schema.GroupResource{Group: "*", Resource: "*"}

// Config is an EncryptionConfiguration that has been read and validated.
type Config struct {
	path      string
	reload    bool              // as ReadConfig was called
	sum       [sha256.Size]byte // of the file
	resources []apiserver.ResourceConfiguration
}

// decoder is strict: an unknown field is an error.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(apiserver.AddToScheme(scheme))
	utilruntime.Must(apiserverv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
}()

// ReadConfig reads a file with an EncryptionConfiguration of apiserver.config.k8s.io/v1.
// reload says that its later content will be given to Store.Reload. An error is one line
// that names the file and the field.
func ReadConfig(path string, reload bool) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseConfig(path, data, reload)
}

func parseConfig(path string, data []byte, reload bool) (*Config, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("%s: the file is empty", path)
	}
	object, kind, err := decoder.Decode(data, nil, nil)
	switch {
	case runtime.IsMissingKind(err), runtime.IsMissingVersion(err), runtime.IsNotRegisteredError(err): // the error's text has the whole file, with the keys
		return nil, fmt.Errorf("%s: kind must be EncryptionConfiguration, and apiVersion %s", path, apiserverv1.SchemeGroupVersion)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, oneLine{err})
	}
	config, ok := object.(*apiserver.EncryptionConfiguration)
	if !ok {
		return nil, fmt.Errorf("%s: the kind is %s: it must be EncryptionConfiguration", path, kind.Kind)
	}
	faults := validation.ValidateEncryptionConfiguration(config, reload)
	if len(faults) == 0 {
		faults = validateFurther(config.Resources)
	}
	if err := faults.ToAggregate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, oneLine{err})
	}
	return &Config{path: path, reload: reload, sum: sha256.Sum256(data), resources: config.Resources}, nil
}

// oneLine is an error whose text has no line breaks.
type oneLine struct{ err error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.err.Error()), " ") }
func (e oneLine) Unwrap() error { return e.err }

// validateFurther finds what Kubernetes finds only when it makes the ciphers.
func validateFurther(resources []apiserver.ResourceConfiguration) field.ErrorList {
	var faults field.ErrorList
	masked := map[schema.GroupResource]bool{}
	for i, entry := range resources {
		path := field.NewPath("resources").Index(i)
		for j, name := range entry.Resources {
			resource := schema.ParseGroupResource(name)
			if masked[schema.GroupResource{Group: resource.Group, Resource: "*"}] || masked[AllResources] {
				faults = append(faults, field.Invalid(path.Child("resources").Index(j), name, "an earlier entry with a wildcard applies to it"))
			}
			masked[resource] = true
		}
		for j, provider := range entry.Providers {
			if provider.KMS != nil && provider.KMS.APIVersion != kmsAPIVersion {
				faults = append(faults, field.NotSupported(path.Child("providers").Index(j).Child("kms", "apiVersion"), provider.KMS.APIVersion, []string{kmsAPIVersion}))
			}
		}
	}
	return faults
}

// The prefixes of values, as Kubernetes has them.
const (
	prefixAESCBC    = "k8s:enc:aescbc:v1:"
	prefixAESGCM    = "k8s:enc:aesgcm:v1:"
	prefixSecretbox = "k8s:enc:secretbox:v1:"
	prefixKMS       = "k8s:enc:kms:v2:"
)

// newKeys makes the keys of a list of providers, in order. plugin returns the
// transformer of a KMS plugin.
func newKeys(providers []apiserver.ProviderConfiguration, plugin func(*apiserver.KMSConfiguration) (value.Transformer, error)) ([]*key, error) {
	var keys []*key
	add := func(prefix string, configured []apiserver.Key, cipherOf func([]byte) (value.Transformer, error)) error {
		for _, k := range configured {
			secret, err := base64.StdEncoding.DecodeString(k.Secret)
			if err != nil {
				return fmt.Errorf("the key %s: %w", k.Name, err)
			}
			transformer, err := cipherOf(secret)
			if err != nil {
				return fmt.Errorf("the key %s: %w", k.Name, err)
			}
			keys = append(keys, &key{prefix: prefix + k.Name + ":", transformer: transformer})
		}
		return nil
	}
	for _, p := range providers {
		var err error
		switch {
		case p.AESGCM != nil:
			err = add(prefixAESGCM, p.AESGCM.Keys, blockCipher(aestransformer.NewGCMTransformer))
		case p.AESCBC != nil:
			err = add(prefixAESCBC, p.AESCBC.Keys, blockCipher(func(b cipher.Block) (value.Transformer, error) {
				return aestransformer.NewCBCTransformer(b), nil
			}))
		case p.Secretbox != nil:
			err = add(prefixSecretbox, p.Secretbox.Keys, func(secret []byte) (value.Transformer, error) {
				if len(secret) != secretboxKeySize {
					return nil, fmt.Errorf("%d bytes: it must have %d", len(secret), secretboxKeySize)
				}
				return secretbox.NewSecretboxTransformer([secretboxKeySize]byte(secret)), nil
			})
		case p.KMS != nil:
			var transformer value.Transformer
			if transformer, err = plugin(p.KMS); err == nil {
				keys = append(keys, &key{prefix: prefixKMS + p.KMS.Name + ":", transformer: transformer})
			}
		case p.Identity != nil:
			keys = append(keys, &key{})
		default:
			err = errors.New("a provider is none of aescbc, aesgcm, secretbox, kms and identity")
		}
		if err != nil {
			return nil, err
		}
	}
	return keys, nil
}

const secretboxKeySize = 32

func blockCipher(transformer func(cipher.Block) (value.Transformer, error)) func([]byte) (value.Transformer, error) {
	return func(secret []byte) (value.Transformer, error) {
		block, err := aes.NewCipher(secret)
		if err != nil {
			return nil, err
		}
		return transformer(block)
	}
}
