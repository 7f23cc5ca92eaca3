package csr_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	"go.uber.org/goleak"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func request(t *testing.T, name, signer, organization string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: []string{organization}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
	}}
}

// TestSigners: a user who may update approvals and statuses needs a right on the signer
// besides.
func TestSigners(t *testing.T) {
	s := levelwiretest.Start(t)
	admin := s.Client(client.Options{})
	for _, role := range []*rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "approver"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get", "update"}, APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"}},
		{Verbs: []string{"approve", "sign"}, APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, ResourceNames: []string{"example.com/*"}},
	}}} {
		if _, err := client.For[*rbacv1.ClusterRole](admin).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.For[*rbacv1.ClusterRoleBinding](admin).Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "approver"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "approver"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ann"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ann, err := client.New(s.UserConfig("ann"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ann.CloseIdleConnections()
	requests := client.For[*certificatesv1.CertificateSigningRequest](ann)
	for signer, allowed := range map[string]bool{"example.com/one": true, "other.com/one": false} {
		made, err := client.For[*certificatesv1.CertificateSigningRequest](admin).Create(t.Context(), request(t, strings.ReplaceAll(signer, "/", "-"), signer, "o"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		approved := made.DeepCopy()
		approved.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "r"}}
		err = requests.SubResource("approval").Update(t.Context(), approved.Name, approved, metav1.UpdateOptions{})
		if (err == nil) != allowed || err != nil && !(apierrors.IsForbidden(err) && strings.Contains(err.Error(), `user not permitted to approve requests with signerName "`+signer+`"`)) {
			t.Errorf("approval of %s: %v", signer, err)
		}
		failed, err := requests.Get(t.Context(), made.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		failed.Status.Conditions = append(failed.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "r"})
		_, err = requests.UpdateStatus(t.Context(), failed, metav1.UpdateOptions{})
		if (err == nil) != allowed || err != nil && !strings.Contains(err.Error(), "user not permitted to sign requests with signerName") {
			t.Errorf("signing of %s: %v", signer, err)
		}
	}
}

// TestMasters: a request for a certificate of the group that no authorizer limits is refused.
func TestMasters(t *testing.T) {
	admin := levelwiretest.Start(t).Client(client.Options{})
	requests := client.For[*certificatesv1.CertificateSigningRequest](admin)
	_, err := requests.Create(t.Context(), request(t, "masters", certificatesv1.KubeAPIServerClientSignerName, "system:masters"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed") {
		t.Errorf("masters: %v", err)
	}
	if _, err = requests.Create(t.Context(), request(t, "others", certificatesv1.KubeAPIServerClientSignerName, "others"), metav1.CreateOptions{}); err != nil {
		t.Errorf("others: %v", err)
	}
}
