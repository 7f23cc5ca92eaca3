package csr

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
)

var requestsResource = schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}

// Plugin is the plugins CertificateApproval, CertificateSigning, CertificateSubjectRestriction
// and ClusterTrustBundleAttest, each of which is a method, and what every server sees to in
// PodCertificateRequests. It is safe for concurrent use.
type Plugin struct{ authorizer auth.Authorizer }

// New returns the plugins, which ask an authorizer.
func New(authorizer auth.Authorizer) Plugin { return Plugin{authorizer} }

// Approve refuses the approval and the denial of requests to a signer for which the user
// has no right to approve.
func (p Plugin) Approve(ctx context.Context, q *registry.Request) error {
	old, ok := q.Old.(*certificatesv1.CertificateSigningRequest)
	if !ok || q.Resource.GroupResource() != requestsResource || q.Operation != registry.Update || q.Subresource != "approval" {
		return nil
	}
	if !p.may(ctx, "approve", old.Spec.SignerName) {
		return q.Forbidden(fmt.Errorf("user not permitted to approve requests with signerName %q", old.Spec.SignerName))
	}
	return nil
}

// Sign refuses certificates for requests to a signer for which the user has no right to
// sign.
func (p Plugin) Sign(ctx context.Context, q *registry.Request) error {
	old, ok := q.Old.(*certificatesv1.CertificateSigningRequest)
	if !ok || q.Resource.GroupResource() != requestsResource || q.Operation != registry.Update || q.Subresource != "status" {
		return nil
	}
	request, ok := q.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok || bytes.Equal(old.Status.Certificate, request.Status.Certificate) && equality.Semantic.DeepEqual(old.Status.Conditions, request.Status.Conditions) {
		return nil
	}
	if !p.may(ctx, "sign", old.Spec.SignerName) {
		return q.Forbidden(fmt.Errorf("user not permitted to sign requests with signerName %q", old.Spec.SignerName))
	}
	return nil
}

// RestrictSubject refuses requests for client certificates of the group system:masters,
// which no authorizer limits.
func (p Plugin) RestrictSubject(_ context.Context, q *registry.Request) error {
	request, ok := q.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok || q.Resource.GroupResource() != requestsResource || q.Operation != registry.Create || q.Subresource != "" ||
		request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	parsed, err := parse(request.Spec.Request)
	if err != nil {
		return q.Forbidden(fmt.Errorf("failed to parse CSR: %w", err))
	}
	if slices.Contains(parsed.Subject.Organization, "system:masters") {
		return q.Forbidden(fmt.Errorf("use of %s signer with system:masters group is not allowed", certificatesv1.KubeAPIServerClientSignerName))
	}
	return nil
}

// may reports whether the user has a right on a signer, by its name or by its domain's
// DOMAIN/*. What the server itself writes is allowed.
func (p Plugin) may(ctx context.Context, verb, signer string) bool {
	user, ok := auth.UserFrom(ctx)
	if !ok {
		return true
	}
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		// An error says that a part of the decision could not be made: what is allowed
		// nevertheless is allowed.
		decision, _, _ := p.authorizer.Authorize(ctx, auth.Attributes{
			User: user, Verb: verb, Group: certificatesv1.GroupName, Version: "*", Resource: "signers", Name: name,
		})
		if decision == auth.Allow {
			return true
		}
	}
	return false
}

func parse(request []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}
