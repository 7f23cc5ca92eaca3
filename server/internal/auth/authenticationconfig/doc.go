// Package authenticationconfig authenticates users as a file of the kind
// AuthenticationConfiguration says ("Using Authentication Configuration" in Kubernetes'
// documentation): by the JSON web tokens of OpenID Connect issuers, and without
// credentials. The file may change while the server runs.
//
// config.go reads the file, authenticator.go has the issuers in force, issuer.go is one of
// them, and fetch.go bounds what is fetched from it.
package authenticationconfig
