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
	// DefaultName is the account of pods that name none.
	DefaultName = "default"
	// RootCAName is the ConfigMap that tells pods which authority signed the
	// server's certificate.
	RootCAName = "kube-root-ca.crt"

	// fieldManager is who the fields belong to that are written here.
	fieldManager = "levelwire"
	description  = "kubernetes.io/description"
)

// Accounts are the service accounts of a cluster, and what every namespace has
// for its pods: the account DefaultName and the ConfigMap RootCAName. Whoever
// needs one of them before it is there makes it. It is safe for concurrent use.
type Accounts struct {
	set      *registry.Set
	rootCA   string
	makeNone bool
}

// AccountOptions says what namespaces have.
type AccountOptions struct {
	// RootCA, in PEM, verifies the server's certificate.
	RootCA []byte
	// MakeNone: an account that nobody has made is missed by those who need it.
	MakeNone bool
}

// NewAccounts returns the accounts of a set.
func NewAccounts(set *registry.Set, opts AccountOptions) *Accounts {
	return &Accounts{set: set, rootCA: string(bytes.TrimSpace(opts.RootCA)) + "\n", makeNone: opts.MakeNone}
}

// Ensure makes or mends what a namespace has for its pods. A namespace that is
// not there or is going needs nothing.
func (a *Accounts) Ensure(ctx context.Context, namespace string) error {
	err := a.ensureDefault(ctx, namespace)
	if err == nil {
		err = a.ensureRootCA(ctx, namespace)
	}
	if isGoing(err) {
		return nil
	}
	return err
}

// isGoing says whether nothing can be created in a namespace (any more).
func isGoing(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func (a *Accounts) ensureDefault(ctx context.Context, namespace string) error {
	accounts, ok := a.set.Lookup("", "v1", "serviceaccounts")
	if !ok {
		return nil
	}
	return accounts.Ensure(ctx, namespace, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: DefaultName}})
}

func (a *Accounts) ensureRootCA(ctx context.Context, namespace string) error {
	configMaps, ok := a.set.Lookup("", "v1", "configmaps")
	if !ok {
		return nil
	}
	want := map[string]string{corev1.ServiceAccountRootCAKey: a.rootCA}
	current, err := registry.GetAs[*corev1.ConfigMap](ctx, configMaps, namespace, RootCAName)
	switch {
	case apierrors.IsNotFound(err):
		return configMaps.Ensure(ctx, namespace, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: RootCAName, Annotations: map[string]string{
				description: "The authority that signed the certificate which the API server shows under its addresses in the cluster.",
			}},
			Data: want,
		})
	case err != nil || maps.Equal(current.Data, want):
		return err
	}
	_, err = configMaps.Update(ctx, namespace, RootCAName, func(now resource.Object) (resource.Object, error) {
		mended := now.DeepCopyObject().(*corev1.ConfigMap)
		mended.Data, mended.BinaryData = want, nil
		return mended, nil
	}, registry.UpdateOptions{WriteOptions: registry.WriteOptions{FieldManager: fieldManager}, Unconditional: true})
	return err
}

// get returns an account. The default one is made if it is missing: a pod or a
// token may be asked for right after the namespace was made.
func (a *Accounts) get(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	account, err := lookup[*corev1.ServiceAccount](ctx, a.set, "serviceaccounts", namespace, name)
	if !apierrors.IsNotFound(err) || name != DefaultName || a.makeNone {
		return account, err
	}
	if err := a.ensureDefault(ctx, namespace); err != nil {
		return nil, err
	}
	return lookup[*corev1.ServiceAccount](ctx, a.set, "serviceaccounts", namespace, name)
}
