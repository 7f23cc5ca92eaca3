package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

const requestsPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// certificateRequest is the PEM text of a request, in base64.
func certificateRequest(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	must(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
}

// requestWithModulus is such a text with an RSA key of so many bits, and no signature.
func requestWithModulus(t *testing.T, bits uint) string {
	t.Helper()
	modulus := new(big.Int).Lsh(big.NewInt(1), bits-1)
	key, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: modulus.Add(modulus, big.NewInt(1)), E: 65537})
	must(t, err)
	type asked struct {
		Version      int
		Subject, Key asn1.RawValue
		Attributes   []asn1.RawValue `asn1:"tag:0"`
	}
	request, err := asn1.Marshal(struct {
		Asked     asked
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		asked{Subject: asn1.RawValue{FullBytes: []byte{0x30, 0}}, Key: asn1.RawValue{FullBytes: key}},
		pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}, Parameters: asn1.NullRawValue},
		asn1.BitString{Bytes: make([]byte, bits/8), BitLength: int(bits)},
	})
	must(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
}

// certificate is the PEM text of one, in base64.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))
}

// TestCertificateRequestsAreChecked: what a request asks for, once, when it is made.
func TestCertificateRequestsAreChecked(t *testing.T) {
	c := newWritable(t)
	request := certificateRequest(t)
	for spec, want := range map[string]string{
		`"usages":["client auth"]`:                                                  "",
		`"usages":["client auth","x",""]`:                                           `[spec.usages[1]: Unsupported value: "x": supported values: "any", "cert sign", "client auth", `,
		`"usages":["client auth","client auth"]`:                                    `spec.usages[1]: Duplicate value: "client auth"`,
		`"usages":[],"signerName":""`:                                               `[spec.usages: Required value, spec.signerName: Required value]`,
		`"usages":["client auth"],"expirationSeconds":599`:                          `spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)`,
		`"usages":["client auth"],"request":"` + "AAAA" + `"`:                       `spec.request: Invalid value: `,
		`"usages":["client auth"],"request":"` + requestWithModulus(t, 4096) + `"`:  `verification error`,
		`"usages":["client auth"],"request":"` + requestWithModulus(t, 16400) + `"`: `the RSA key has a modulus of 16400 bits, more than 16384`,
	} {
		body := `{"metadata":{"name":"Any Name"},"spec":{"signerName":"example.com/signer","request":"` + request + `",` + spec + `}}`
		code := 201
		if want != "" {
			code = 422
		}
		r := c.send(code, "POST", requestsPath+"?dryRun=All", body)
		var got struct{ Message string }
		if r.into(t, &got); !strings.Contains(got.Message, want) {
			t.Errorf("%s: %s, want %s", spec, got.Message, want)
		}
	}
}

// TestCertificateRequestsKeepWhatTheyAsk: an update leaves the specification as it is, and is not refused for it.
func TestCertificateRequestsKeepWhatTheyAsk(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", requestsPath, `{"metadata":{"name":"a"},"spec":{"signerName":"example.com/signer","usages":["client auth"],"request":"`+certificateRequest(t)+`"}}`)
	var got certificatesv1.CertificateSigningRequest
	c.send(200, "PUT", requestsPath+"/a", `{"metadata":{"name":"a","labels":{"a":"b"}},"spec":{"signerName":"example.com/other","usages":["x"],"request":"AAAA"}}`).into(t, &got)
	if got.Spec.SignerName != "example.com/signer" || got.Labels["a"] != "b" {
		t.Errorf("%+v", got)
	}
}

// TestVerdictsOnCertificateRequests: what a signer may report, and who judges.
func TestVerdictsOnCertificateRequests(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", requestsPath, `{"metadata":{"name":"a"},"spec":{"signerName":"example.com/signer","usages":["client auth"],"request":"`+certificateRequest(t)+`"}}`)
	set := func(code int, subresource, status, want string) {
		t.Helper()
		var got struct{ Message string }
		c.send(code, "PATCH", requestsPath+"/a/"+subresource, `{"status":`+status+`}`, merge).into(t, &got)
		if !strings.Contains(got.Message, want) {
			t.Errorf("%s %s: %s, want %s", subresource, status, got.Message, want)
		}
	}
	condition := func(of ...string) string {
		all := make([]string, 0, len(of))
		for _, c := range of {
			kind, status, _ := strings.Cut(c, "=")
			all = append(all, `{"type":"`+kind+`","status":"`+status+`","reason":"R","message":"m"}`)
		}
		return `{"conditions":[` + strings.Join(all, ",") + `]}`
	}
	set(422, "approval", condition("Approved=False"), `status.conditions[0].status: Unsupported value: "False": supported values: "True"`)
	set(422, "approval", condition("Example=Maybe"), `status.conditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"`)
	set(422, "approval", condition("Approved=True", "Denied=True"), "must specify at most one of: `conditions[{\"type\": \"Approved\"}]`, `conditions[{\"type\": \"Denied\"}]`")
	set(422, "approval", condition("Example=True", "Example=True"), `status.conditions[1].type: Duplicate value: "Example"`)
	set(422, "status", condition("Approved=True"), `status.conditions: Forbidden: updates may not add a condition of type "Approved"`)
	set(200, "approval", condition("Approved=True"), ``)
	set(422, "approval", condition("Example=True"), `status.conditions: Forbidden: updates may not remove a condition of type "Approved"`)
	set(422, "status", condition("Approved=True", "Denied=True"), `updates may not add a condition of type "Denied", status.conditions: Invalid value: `)
	set(422, "status", condition("Failed=True"), `status.conditions: Forbidden: updates may not remove a condition of type "Approved"`)
	set(200, "status", condition("Approved=True", "Failed=True"), ``)
	set(422, "status", `{"certificate":"AAAA"}`, `status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block`)
	key := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY"}))
	set(422, "status", `{"certificate":"`+key+`"}`, `only CERTIFICATE PEM blocks are allowed, found "PRIVATE KEY"`)
	set(200, "status", `{"certificate":"`+certificate(t)+`"}`, ``)
	set(422, "status", `{"certificate":"`+certificate(t)+`"}`, `status.certificate: Forbidden: updates may not modify existing certificate content`)
}
