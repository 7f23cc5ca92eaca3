package builtin_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// makeCertificate returns the certificate of a key in PEM, signed with the key itself.
func makeCertificate(t *testing.T, key crypto.Signer, change func(*x509.Certificate)) []byte {
	t.Helper()
	begin := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: begin, NotAfter: begin.Add(24 * time.Hour), BasicConstraintsValid: true, IsCA: true}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func makeKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// stubOf returns the request of a key in DER.
func stubOf(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func details(errs field.ErrorList) string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Field+": "+err.Detail)
	}
	return strings.Join(texts, "; ")
}

// TestTrustBundles: all that cannot be trusted is told by its place, and what is there twice or missing only
// of certificates that can be read.
func TestTrustBundles(t *testing.T) {
	one, two := makeKey(t, elliptic.P256()), makeKey(t, elliptic.P256())
	first, second := string(makeCertificate(t, one, nil)), string(makeCertificate(t, two, nil))
	leaf := string(makeCertificate(t, one, func(c *x509.Certificate) { c.IsCA = false }))
	block := func(kind string, headers map[string]string, content []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Headers: headers, Bytes: content}))
	}
	parsed, _ := pem.Decode([]byte(first))
	for what, tt := range map[string]struct{ bundle, want string }{
		"two":                 {"text\n" + first + "more\n" + second, ""},
		"none":                {"x", "spec.trustBundle: at least one trust anchor must be provided"},
		"one three times":     {first + second + first + first, "spec.trustBundle: duplicate trust anchor (indices [0 2 3])"},
		"each twice":          {first + second + second + first, "spec.trustBundle: duplicate trust anchor (indices [0 3]); spec.trustBundle: duplicate trust anchor (indices [1 2])"},
		"a leaf, and a twice": {first + first + leaf, "spec.trustBundle: entry 2 does not have the CA bit set"},
		"a key":               {first + block("EC PRIVATE KEY", nil, nil), "spec.trustBundle: entry 1 has bad block type: EC PRIVATE KEY"},
		"headers":             {block("CERTIFICATE", map[string]string{"a": "b"}, parsed.Bytes), "spec.trustBundle: entry 0 has PEM block headers"},
		"nonsense, twice":     {block("CERTIFICATE", nil, []byte("x")) + leaf, "spec.trustBundle: entry 0 does not parse as X.509; spec.trustBundle: entry 1 does not have the CA bit set"},
		"too long":            {strings.Repeat("x", 1<<20+1), "spec.trustBundle: may not be more than 1048576 bytes"},
	} {
		r, obj := manifest(t, "trustbundle")
		obj.(*certificatesv1.ClusterTrustBundle).Spec.TrustBundle = tt.bundle
		if got := details(validateNew(r, obj)); got != tt.want {
			t.Errorf("%s: %q, want %q", what, got, tt.want)
		}
	}
	// What Go no longer reads may stay.
	r, old := manifest(t, "trustbundle")
	old.(*certificatesv1.ClusterTrustBundle).Spec.TrustBundle = "x"
	if errs := r.Strategy.ValidateUpdate(old.DeepCopyObject().(*certificatesv1.ClusterTrustBundle), old); len(errs) > 0 {
		t.Errorf("a bundle that stays: %v", errs)
	}
}

// TestStubRequests: of a request, the kind of the key and the signature count.
func TestStubRequests(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	forged := bytes.Clone(stubOf(t, makeKey(t, elliptic.P384())))
	forged[len(forged)-1] ^= 1
	for what, tt := range map[string]struct {
		stub []byte
		want string
	}{
		"P-521":    {stubOf(t, makeKey(t, elliptic.P521())), ""},
		"Ed25519":  {stubOf(t, edwards), ""},
		"P-224":    {stubOf(t, makeKey(t, elliptic.P224())), "spec.stubPKCS10Request: elliptic public keys must use curve P256, P384, or P521"},
		"RSA 2048": {stubOf(t, small), "spec.stubPKCS10Request: RSA keys must have modulus size 3072 or 4096"},
		"forged":   {forged, "spec.stubPKCS10Request: invalid signature"},
		"nonsense": {[]byte("x"), "spec.stubPKCS10Request: must be a valid PKCS#10 CSR"},
		"long":     {make([]byte, 10<<10+1), "spec.stubPKCS10Request: may not be more than 10240 bytes"},
		"none":     {nil, "spec: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"},
	} {
		r, obj := manifest(t, "podcertificaterequest")
		obj.(*certificatesv1.PodCertificateRequest).Spec.StubPKCS10Request = tt.stub
		if got := details(validateNew(r, obj)); got != tt.want {
			t.Errorf("%s: %q, want %q", what, got, tt.want)
		}
	}
}

// outcome is the condition that ends the request of a pod.
func outcome(kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now()}
}

// TestPodRequestEnds: a signer ends a request once, without a certificate or with one that fits the request.
func TestPodRequestEnds(t *testing.T) {
	key := makeKey(t, elliptic.P256())
	r, obj := manifest(t, "podcertificaterequest", "spec.maxExpirationSeconds=86400")
	pending := obj.(*certificatesv1.PodCertificateRequest)
	pending.Spec.StubPKCS10Request = stubOf(t, key)
	issued := func(change func(*x509.Certificate)) *certificatesv1.PodCertificateRequest {
		chain := makeCertificate(t, key, change)
		block, _ := pem.Decode(chain)
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		q := pending.DeepCopy()
		q.Status = certificatesv1.PodCertificateRequestStatus{
			Conditions: []metav1.Condition{outcome("Issued")}, CertificateChain: string(chain),
			NotBefore: &metav1.Time{Time: leaf.NotBefore}, NotAfter: &metav1.Time{Time: leaf.NotAfter}, BeginRefreshAt: &metav1.Time{Time: leaf.NotAfter.Add(-time.Hour)},
		}
		return q
	}
	change := func(q *certificatesv1.PodCertificateRequest, f func(s *certificatesv1.PodCertificateRequestStatus)) *certificatesv1.PodCertificateRequest {
		q = q.DeepCopy()
		f(&q.Status)
		return q
	}
	conditions := func(list ...metav1.Condition) *certificatesv1.PodCertificateRequest {
		return change(pending, func(s *certificatesv1.PodCertificateRequestStatus) { s.Conditions = list })
	}
	of := func(c metav1.Condition, status metav1.ConditionStatus) metav1.Condition { c.Status = status; return c }
	good := issued(nil)
	foreign := string(makeCertificate(t, makeKey(t, elliptic.P256()), nil))
	hour := func(n time.Duration) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotAfter = c.NotBefore.Add(n * time.Hour / 2) }
	}
	for what, tt := range map[string]struct {
		old, now *certificatesv1.PodCertificateRequest
		want     []string
	}{
		"issued":          {pending, good, nil},
		"denied":          {pending, conditions(outcome("Denied")), nil},
		"failed":          {pending, conditions(outcome("Failed")), nil},
		"two outcomes":    {pending, conditions(outcome("Denied"), outcome("Failed")), []string{"Invalid status.conditions.[1].type"}},
		"twice denied":    {pending, conditions(outcome("Denied"), outcome("Denied")), []string{"Invalid status.conditions.[1].type", "Duplicate status.conditions[1]"}},
		"not denied":      {pending, conditions(of(outcome("Denied"), metav1.ConditionFalse)), []string{"NotSupported status.conditions.[0].status"}},
		"another outcome": {pending, conditions(outcome("Approved")), []string{"NotSupported status.conditions.[0].type"}},
		"denied later":    {good, conditions(outcome("Denied")), []string{"Invalid status"}},
		"taken back":      {good, pending, []string{"Invalid status"}},
		"denied, with a certificate": {pending, change(conditions(outcome("Denied")), func(s *certificatesv1.PodCertificateRequestStatus) {
			s.CertificateChain = good.Status.CertificateChain
		}), []string{"Invalid status"}},
		"no outcome":      {pending, change(good, func(s *certificatesv1.PodCertificateRequestStatus) { s.Conditions = nil }), []string{"Invalid status"}},
		"no certificate":  {pending, conditions(outcome("Issued")), []string{"Invalid status.certificateChain"}},
		"an intermediate": {pending, change(good, func(s *certificatesv1.PodCertificateRequestStatus) { s.CertificateChain += foreign }), nil},
		"another key":     {pending, change(good, func(s *certificatesv1.PodCertificateRequestStatus) { s.CertificateChain = foreign }), []string{"Invalid status.certificateChain"}},
		"a key in the chain": {pending, change(good, func(s *certificatesv1.PodCertificateRequestStatus) {
			s.CertificateChain += "-----BEGIN KEY-----\n-----END KEY-----\n"
		}), []string{"Invalid status.certificateChain"}},
		"no times, and a key in the chain": {pending, change(good, func(s *certificatesv1.PodCertificateRequestStatus) {
			s.CertificateChain += "-----BEGIN KEY-----\n-----END KEY-----\n"
			s.NotBefore, s.NotAfter, s.BeginRefreshAt = nil, nil, nil
		}),
			[]string{"Required status.notBefore", "Required status.notAfter", "Required status.beginRefreshAt"}},
		"no times": {pending, change(good, func(s *certificatesv1.PodCertificateRequestStatus) {
			s.NotBefore, s.NotAfter, s.BeginRefreshAt = nil, nil, nil
		}),
			[]string{"Required status.notBefore", "Required status.notAfter", "Required status.beginRefreshAt"}},
		"another begin": {pending, change(good, func(s *certificatesv1.PodCertificateRequestStatus) {
			s.NotBefore = &metav1.Time{Time: s.NotBefore.Add(1)}
		}), []string{"Invalid status.notBefore"}},
		"another end": {pending, change(good, func(s *certificatesv1.PodCertificateRequestStatus) {
			s.NotAfter = &metav1.Time{Time: s.NotAfter.Add(1)}
		}), []string{"Invalid status.notAfter"}},
		"refreshed too early": {pending, change(good, func(s *certificatesv1.PodCertificateRequestStatus) {
			s.BeginRefreshAt = &metav1.Time{Time: s.NotBefore.Add(9 * time.Minute)}
		}), []string{"Invalid status.beginRefreshAt"}},
		"refreshed too late": {pending, change(good, func(s *certificatesv1.PodCertificateRequestStatus) {
			s.BeginRefreshAt = &metav1.Time{Time: s.NotAfter.Add(-9 * time.Minute)}
		}), []string{"Invalid status.beginRefreshAt"}},
		"for half an hour": {pending, issued(hour(1)), []string{"Invalid status.certificateChain"}},
		"for an hour more": {pending, issued(hour(50)), []string{"Invalid status.certificateChain"}},
		"an empty name":    {pending, issued(func(c *x509.Certificate) { c.DNSNames = []string{"a..b"} }), []string{"Invalid status.certificateChain"}},
	} {
		if got := complaints(r.Strategy.ValidateStatus(tt.now, tt.old)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", what, got, tt.want)
		}
	}
}

// TestMigrationEnds: once, and at the version at which it began.
func TestMigrationEnds(t *testing.T) {
	const at = "lastTransitionTime: '2027-01-01T00:00:00Z', reason: R}"
	begun, succeeded, failed := "status.resourceVersion='5'", "status.conditions=[{type: Succeeded, status: 'True', "+at+"]", "status.conditions=[{type: Failed, status: 'True', "+at+"]"
	both := "status.conditions=[{type: Succeeded, status: 'True', " + at + ", {type: Failed, status: 'True', " + at + "]"
	for _, tt := range []struct {
		before, after []string
		want          []string
	}{
		{nil, []string{begun}, nil},
		{[]string{begun}, []string{begun, succeeded}, nil},
		{nil, []string{"status.resourceVersion='05'"}, []string{"Invalid status.resourceVersion"}},
		{[]string{begun}, []string{"status.resourceVersion='6'"}, []string{"Invalid status.resourceVersion"}},
		{nil, []string{"status.conditions=[{type: Running, status: 'True'}]"}, []string{"Required status.conditions[0].lastTransitionTime", "Required status.conditions[0].reason"}},
		{nil, []string{both}, []string{"Invalid status.conditions"}},
		{[]string{succeeded}, nil, []string{"Invalid status.conditions"}},
		{[]string{failed}, []string{succeeded}, []string{"Invalid status.conditions"}},
	} {
		r, old := manifestAsIs(t, "migration", tt.before...)
		_, obj := manifestAsIs(t, "migration", tt.after...)
		if got := complaints(r.Strategy.ValidateStatus(obj, old)); !slices.Equal(got, tt.want) {
			t.Errorf("%q, then %q: %q, want %q", tt.before, tt.after, got, tt.want)
		}
	}
}
