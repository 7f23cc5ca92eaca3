// Package csr is the admission plugins that keep signers apart: who may approve
// and sign the certificate requests of a signer, which subjects a request may have, who may
// publish what is trusted in a signer's name, and who may end the requests of pods.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#authorization
package csr
