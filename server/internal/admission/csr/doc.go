// Package csr is the admission plugins that keep signers apart: who may approve
// and sign the certificate requests of a signer, and which subjects a request may have.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#authorization
package csr
