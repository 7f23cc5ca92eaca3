package serviceaccount

import (
	"bytes"
	"context"
	"fmt"

	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// A secret of the type kubernetes.io/service-account-token holds a legacy token,
// which is valid as long as the secret exists. A client creates the secret with the
// account's name in an annotation, and the Keeper fills in the token, the
// certificate authority and the namespace.

// reviewSecrets queues the token secrets of a namespace.
func (k *Keeper) reviewSecrets(ctx context.Context, namespace string) error {
	secrets, ok := k.accounts.set.Lookup("", "v1", "secrets")
	if !ok {
		return nil
	}
	snapshot, err := secrets.Snapshot(ctx)
	if err != nil {
		return err
	}
	field, ok := secrets.Resource().FieldIndex("type")
	if !ok {
		return nil
	}
	for o := range snapshot.Range(namespace+"/", "") {
		if o.Attributes.Fields[field] == string(corev1.SecretTypeServiceAccountToken) {
			k.add(task{namespace: namespace, secret: o.Attributes.Name})
		}
	}
	return nil
}

// keepSecret fills in a token secret, or deletes it if its account does not exist.
func (k *Keeper) keepSecret(ctx context.Context, namespace, name string) error {
	secrets, ok := k.accounts.set.Lookup("", "v1", "secrets")
	if !ok {
		return nil
	}
	secret, err := registry.GetAs[*corev1.Secret](ctx, secrets, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case secret.Type != corev1.SecretTypeServiceAccountToken || secret.DeletionTimestamp != nil:
		return nil
	}
	account, err := k.accounts.get(ctx, namespace, secret.Annotations[corev1.ServiceAccountNameKey])
	gone := apierrors.IsNotFound(err)
	switch {
	case err != nil && !gone:
		return ignoreGoing(err)
	case gone || !sameUID(secret.Annotations[corev1.ServiceAccountUIDKey], account.UID):
		_, err := secrets.DeleteAdmitted(ctx, namespace, name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &secret.UID}})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	case k.filled(secret):
		return nil
	}
	_, err = secrets.Update(ctx, namespace, name, func(current resource.Object) (resource.Object, error) {
		return k.fill(current.DeepCopyObject().(*corev1.Secret), account)
	}, registry.UpdateOptions{WriteOptions: registry.WriteOptions{FieldManager: fieldManager}, Unconditional: true})
	return ignoreGoing(err)
}

func ignoreGoing(err error) error {
	if isTerminating(err) {
		return nil
	}
	return err
}

func (k *Keeper) filled(secret *corev1.Secret) bool {
	return len(secret.Data[corev1.ServiceAccountTokenKey]) > 0 &&
		bytes.Equal(secret.Data[corev1.ServiceAccountRootCAKey], []byte(k.accounts.rootCA)) &&
		string(secret.Data[corev1.ServiceAccountNamespaceKey]) == secret.Namespace &&
		secret.Annotations[corev1.ServiceAccountUIDKey] != ""
}

// fill completes a token secret. It leaves an existing token alone.
func (k *Keeper) fill(secret *corev1.Secret, account *corev1.ServiceAccount) (resource.Object, error) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	if len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
		token, err := k.tokens.sign(&claims{
			Claims: jwt.Claims{Issuer: legacyIssuer, Subject: auth.ServiceAccountName(secret.Namespace, account.Name)},
			legacy: legacy{secret.Namespace, secret.Name, account.Name, account.UID},
		})
		if err != nil {
			return nil, fmt.Errorf("sign the token of secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		secret.Data[corev1.ServiceAccountTokenKey] = []byte(token)
	}
	secret.Data[corev1.ServiceAccountRootCAKey] = []byte(k.accounts.rootCA)
	secret.Data[corev1.ServiceAccountNamespaceKey] = []byte(secret.Namespace)
	secret.Annotations[corev1.ServiceAccountUIDKey] = string(account.UID)
	return secret, nil
}
