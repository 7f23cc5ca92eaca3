package csr_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// signers starts a server with the user ann, who may do everything with bundles and the requests
// of pods, and has a right on the signers of example.com.
func signers(t *testing.T, verb string, change ...func(*server.Config)) (admin, ann *client.Client) {
	t.Helper()
	s := levelwiretest.Start(t, change...)
	admin = s.Client(client.Options{})
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "signer"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"clustertrustbundles", "podcertificaterequests", "podcertificaterequests/status"}},
		{Verbs: []string{verb}, APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, ResourceNames: []string{"example.com/*"}},
	}}
	if _, err := client.For[*rbacv1.ClusterRole](admin).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "signer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "signer"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ann"}},
	}
	if _, err := client.For[*rbacv1.ClusterRoleBinding](admin).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ann, err := client.New(s.UserConfig("ann"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ann.CloseIdleConnections)
	return admin, ann
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// certificate returns one in PEM that begins at a time.
func certificate(t *testing.T, key *ecdsa.PrivateKey, begin time.Time) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: begin, NotAfter: begin.Add(2 * time.Hour), BasicConstraintsValid: true, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func bundle(t *testing.T, name, signer string) *certificatesv1.ClusterTrustBundle {
	t.Helper()
	return &certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.ClusterTrustBundleSpec{
		SignerName: signer, TrustBundle: certificate(t, newKey(t), time.Now()),
	}}
}

// TestAttest: only who may attest for a signer publishes what is trusted in its name. What the garbage
// collector writes is no such statement.
func TestAttest(t *testing.T) {
	admin, ann := signers(t, "attest")
	bundles, all := client.For[*certificatesv1.ClusterTrustBundle](ann), client.For[*certificatesv1.ClusterTrustBundle](admin)
	create := func(of client.Resource[*certificatesv1.ClusterTrustBundle], name, signer string) error {
		_, err := of.Create(t.Context(), bundle(t, name, signer), metav1.CreateOptions{})
		return err
	}
	const refusal = `user not permitted to attest for signerName "other.com/two"`
	if err := create(bundles, "example.com:one:a", "example.com/one"); err != nil {
		t.Errorf("her own: %v", err)
	}
	if err := create(bundles, "nobodys", ""); err != nil {
		t.Errorf("without a signer: %v", err)
	}
	if err := create(bundles, "other.com:two:a", "other.com/two"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refusal) {
		t.Errorf("of another signer: %v", err)
	}
	if err := create(all, "other.com:two:a", "other.com/two"); err != nil {
		t.Fatal(err)
	}
	patch := func(body string) error {
		_, err := bundles.Patch(t.Context(), "other.com:two:a", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	if err := patch(`{"metadata":{"finalizers":["example.com/f"],"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]}}`); err != nil {
		t.Errorf("finalizers and owners: %v", err)
	}
	if err := patch(`{"metadata":{"labels":{"a":"b"}}}`); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refusal) {
		t.Errorf("a label: %v", err)
	}
}

// TestAttestSwitchedOff: it is a plugin as the others are.
func TestAttestSwitchedOff(t *testing.T) {
	_, ann := signers(t, "attest", func(c *server.Config) { c.DisableAdmissionPlugins = []string{"ClusterTrustBundleAttest"} })
	if _, err := client.For[*certificatesv1.ClusterTrustBundle](ann).Create(t.Context(), bundle(t, "other.com:two:a", "other.com/two"), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}

// TestPodRequestsAreEndedBySigners: who may write statuses needs a right on the signer besides, and the
// certificate begins now.
func TestPodRequestsAreEndedBySigners(t *testing.T) {
	admin, ann := signers(t, "sign")
	key := newKey(t)
	stub, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	create := func(ctx context.Context, name, signer string) *certificatesv1.PodCertificateRequest {
		made, err := client.For[*certificatesv1.PodCertificateRequest](admin).Namespace("default").Create(ctx, &certificatesv1.PodCertificateRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.PodCertificateRequestSpec{
				SignerName: signer, PodName: "p", PodUID: "p", ServiceAccountName: "s", ServiceAccountUID: "s", NodeName: "n", NodeUID: "n", StubPKCS10Request: stub,
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	requests := client.For[*certificatesv1.PodCertificateRequest](ann).Namespace("default")
	end := func(q *certificatesv1.PodCertificateRequest, kind string) error {
		q.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now()}}
		_, err := requests.UpdateStatus(t.Context(), q, metav1.UpdateOptions{})
		return err
	}
	issue := func(q *certificatesv1.PodCertificateRequest, begin time.Time) error {
		begin = begin.UTC().Truncate(time.Second)
		q.Status.CertificateChain = certificate(t, key, begin)
		q.Status.NotBefore, q.Status.NotAfter = &metav1.Time{Time: begin}, &metav1.Time{Time: begin.Add(2 * time.Hour)}
		q.Status.BeginRefreshAt = &metav1.Time{Time: begin.Add(time.Hour)}
		return end(q, certificatesv1.PodCertificateRequestConditionTypeIssued)
	}
	if err := end(create(t.Context(), "a", "example.com/one"), certificatesv1.PodCertificateRequestConditionTypeDenied); err != nil {
		t.Errorf("denied by its signer: %v", err)
	}
	if err := issue(create(t.Context(), "b", "example.com/one"), time.Now()); err != nil {
		t.Errorf("issued by its signer: %v", err)
	}
	other := create(t.Context(), "c", "other.com/two")
	if err := end(other.DeepCopy(), certificatesv1.PodCertificateRequestConditionTypeDenied); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), `User "ann" is not permitted to "sign" for signer "other.com/two"`) {
		t.Errorf("denied by another's signer: %v", err)
	}
	if _, err := requests.UpdateStatus(t.Context(), other, metav1.UpdateOptions{}); err != nil {
		t.Errorf("a status that stays: %v", err)
	}
	if err := issue(create(t.Context(), "d", "example.com/one"), time.Now().Add(-time.Hour)); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "status.notBefore") {
		t.Errorf("a certificate from an hour ago: %v", err)
	}
}
