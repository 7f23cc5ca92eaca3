package core

import (
	"crypto/tls"
	"encoding/json"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// maxDataBytes is how much a config map or a secret may hold, 1 MiB.
const maxDataBytes = 1 << 20

var dataPath = field.NewPath("data")

func secretRules() define.Rules[*corev1.Secret] {
	return define.Rules[*corev1.Secret]{
		CompleteStored:    func(s *corev1.Secret) { s.Data = withoutMissing(s.Data) },
		Default:           defaultSecret,
		ValidateUnchanged: validateSecretUnchanged,
		Validate:          validateSecret,
		Warnings:          func(secret, _ *corev1.Secret) []string { return pairWarnings(secret) },
	}
}

// pairWarnings says why the certificate and the key of a secret are none, or do not belong together.
func pairWarnings(secret *corev1.Secret) []string {
	if secret.Type != corev1.SecretTypeTLS {
		return nil
	}
	if _, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// withoutMissing returns data in which a value of null is an empty one, which is what Kubernetes
// stores of it. It changes a copy: the data may be those of another object, too.
func withoutMissing(data map[string][]byte) map[string][]byte {
	result, copied := data, false
	for key, value := range data {
		if value != nil {
			continue
		}
		if !copied {
			result, copied = maps.Clone(data), true
		}
		result[key] = []byte{}
	}
	return result
}

// defaultSecret moves the strings into the data: stringData is only ever
// written.
func defaultSecret(secret *corev1.Secret) {
	define.SetDefault(&secret.Type, corev1.SecretTypeOpaque)
	if len(secret.StringData) > 0 && secret.Data == nil {
		secret.Data = make(map[string][]byte, len(secret.StringData))
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}

func validateSecret(secret *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	total := 0
	for key, value := range secret.Data {
		errs = append(errs, validate.Invalid(dataPath.Key(key), key, validation.IsConfigMapKey(key))...)
		total += len(value)
	}
	if total > maxDataBytes {
		errs = append(errs, field.TooLong(dataPath, "", maxDataBytes))
	}
	return append(errs, validateSecretType(secret)...)
}

// validateSecretType checks the keys that a type promises.
func validateSecretType(secret *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	require := func(key string) []byte {
		value, ok := secret.Data[key]
		if !ok {
			errs = append(errs, field.Required(dataPath.Key(key), ""))
		}
		return value
	}
	requireJSON := func(key string) {
		if value := require(key); value != nil {
			if err := json.Unmarshal(value, &map[string]any{}); err != nil {
				errs = append(errs, field.Invalid(dataPath.Key(key), "<secret contents redacted>", err.Error()))
			}
		}
	}
	switch secret.Type {
	case corev1.SecretTypeServiceAccountToken:
		at := field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey)
		errs = append(errs, validate.Required(at, secret.Annotations[corev1.ServiceAccountNameKey])...)
	case corev1.SecretTypeDockercfg:
		requireJSON(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		requireJSON(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		_, user := secret.Data[corev1.BasicAuthUsernameKey]
		_, password := secret.Data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			errs = append(errs, field.Required(dataPath.Key(corev1.BasicAuthUsernameKey), ""), field.Required(dataPath.Key(corev1.BasicAuthPasswordKey), ""))
		}
	case corev1.SecretTypeSSHAuth:
		if len(secret.Data[corev1.SSHAuthPrivateKey]) == 0 {
			errs = append(errs, field.Required(dataPath.Key(corev1.SSHAuthPrivateKey), ""))
		}
	case corev1.SecretTypeTLS:
		require(corev1.TLSCertKey)
		require(corev1.TLSPrivateKeyKey)
	}
	return errs
}

func validateSecretUnchanged(secret, old *corev1.Secret) field.ErrorList {
	errs := validate.Unchanged(field.NewPath("type"), secret.Type, old.Type)
	if define.ValueOr(old.Immutable, false) {
		errs = append(errs, keepsImmutable(secret.Immutable)...)
		if !equality.Semantic.DeepEqual(secret.Data, old.Data) {
			errs = append(errs, field.Forbidden(dataPath, "field is immutable when `immutable` is set"))
		}
	}
	return errs
}

// keepsImmutable: what is immutable stays so.
func keepsImmutable(now *bool) field.ErrorList {
	if !define.ValueOr(now, false) {
		return field.ErrorList{field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set")}
	}
	return nil
}

func configMapRules() define.Rules[*corev1.ConfigMap] {
	return define.Rules[*corev1.ConfigMap]{
		CompleteStored:    func(cm *corev1.ConfigMap) { cm.BinaryData = withoutMissing(cm.BinaryData) },
		ValidateUnchanged: validateConfigMapUnchanged,
		Validate:          validateConfigMap,
	}
}

func validateConfigMap(cm *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	total := 0
	binaryPath := field.NewPath("binaryData")
	for key, value := range cm.Data {
		errs = append(errs, validate.Invalid(dataPath.Key(key), key, validation.IsConfigMapKey(key))...)
		if _, twice := cm.BinaryData[key]; twice {
			errs = append(errs, field.Invalid(dataPath.Key(key), key, "duplicate of key present in binaryData"))
		}
		total += len(value)
	}
	for key, value := range cm.BinaryData {
		errs = append(errs, validate.Invalid(binaryPath.Key(key), key, validation.IsConfigMapKey(key))...)
		total += len(value)
	}
	if total > maxDataBytes {
		errs = append(errs, field.TooLong(field.NewPath(""), strconv.Itoa(total), maxDataBytes))
	}
	return errs
}

func validateConfigMapUnchanged(cm, old *corev1.ConfigMap) field.ErrorList {
	if !define.ValueOr(old.Immutable, false) {
		return nil
	}
	errs := keepsImmutable(cm.Immutable)
	if !equality.Semantic.DeepEqual(cm.Data, old.Data) {
		errs = append(errs, field.Forbidden(dataPath, "field is immutable when `immutable` is set"))
	}
	if !equality.Semantic.DeepEqual(cm.BinaryData, old.BinaryData) {
		errs = append(errs, field.Forbidden(field.NewPath("binaryData"), "field is immutable when `immutable` is set"))
	}
	return errs
}
