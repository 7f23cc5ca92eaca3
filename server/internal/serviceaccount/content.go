package serviceaccount

import (
	"bytes"
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

const (
	// DefaultName is the account of pods that do not name one.
	DefaultName = "default"
	// RootCAName is the ConfigMap with the certificate authority by which pods
	// verify the server.
	RootCAName = "kube-root-ca.crt"

	// fieldManager owns the fields that this package writes.
	fieldManager = "levelwire"
	description  = "kubernetes.io/description"
)

// Accounts are the service accounts of a cluster, and the defaults that every
// namespace has for its pods: the account DefaultName and the ConfigMap RootCAName.
// A request that needs one of them before it exists creates it. Accounts is safe
// for concurrent use.
type Accounts struct {
	set        *registry.Set
	rootCA     string
	noDefaults bool
}

// AccountOptions say which defaults namespaces get.
type AccountOptions struct {
	// RootCA, in PEM, verifies the server's certificate.
	RootCA []byte
	// NoDefaults: the default account is not created for pods and tokens that
	// need it.
	NoDefaults bool
}

// NewAccounts returns the accounts of a set.
func NewAccounts(set *registry.Set, opts AccountOptions) *Accounts {
	return &Accounts{set: set, rootCA: string(bytes.TrimSpace(opts.RootCA)) + "\n", noDefaults: opts.NoDefaults}
}

// Ensure creates the defaults that a namespace lacks. It does nothing for a namespace
// that does not exist or is being deleted.
func (a *Accounts) Ensure(ctx context.Context, namespace string) error {
	err := a.ensureDefault(ctx, namespace)
	if err == nil {
		err = a.createRootCA(ctx, namespace)
	}
	return unlessTerminating(err)
}

func unlessTerminating(err error) error {
	if isTerminating(err) {
		return nil
	}
	return err
}

// isTerminating reports whether err says that a namespace does not exist or is
// being deleted.
func isTerminating(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func (a *Accounts) ensureDefault(ctx context.Context, namespace string) error {
	accounts, ok := a.set.Lookup("", "v1", "serviceaccounts")
	if !ok {
		return nil
	}
	return accounts.Ensure(ctx, namespace, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: DefaultName}})
}

// createRootCA creates the ConfigMap of a namespace unless there is one.
func (a *Accounts) createRootCA(ctx context.Context, namespace string) error {
	configMaps, ok := a.set.Lookup("", "v1", "configmaps")
	if !ok {
		return nil
	}
	return configMaps.Ensure(ctx, namespace, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: RootCAName, Annotations: map[string]string{
			description: "The authority that signed the certificate which the API server shows under its addresses in the cluster.",
		}},
		Data: a.rootCAData(),
	})
}

// correctRootCA creates the ConfigMap of a namespace, or gives it the content that it should have.
func (a *Accounts) correctRootCA(ctx context.Context, namespace string) error {
	configMaps, ok := a.set.Lookup("", "v1", "configmaps")
	if !ok {
		return nil
	}
	current, err := registry.GetAs[*corev1.ConfigMap](ctx, configMaps, namespace, RootCAName)
	switch {
	case apierrors.IsNotFound(err):
		return a.createRootCA(ctx, namespace)
	case err != nil || maps.Equal(current.Data, a.rootCAData()):
		return err
	}
	_, err = configMaps.Update(ctx, namespace, RootCAName, func(now resource.Object) (resource.Object, error) {
		mended := now.DeepCopyObject().(*corev1.ConfigMap)
		mended.Data, mended.BinaryData = a.rootCAData(), nil
		return mended, nil
	}, registry.UpdateOptions{WriteOptions: registry.WriteOptions{FieldManager: fieldManager}, Unconditional: true})
	return err
}

func (a *Accounts) rootCAData() map[string]string {
	return map[string]string{corev1.ServiceAccountRootCAKey: a.rootCA}
}

// get returns an account. It creates the default one if that is missing: a client
// may create a pod or request a token right after it has created the namespace.
func (a *Accounts) get(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	account, err := lookup[*corev1.ServiceAccount](ctx, a.set, "serviceaccounts", namespace, name)
	if !apierrors.IsNotFound(err) || name != DefaultName || a.noDefaults {
		return account, err
	}
	if err := a.ensureDefault(ctx, namespace); err != nil {
		return nil, err
	}
	return lookup[*corev1.ServiceAccount](ctx, a.set, "serviceaccounts", namespace, name)
}
