// Package serviceaccount is the identity of programs in the cluster: the
// accounts that every namespace has, the tokens that stand for them, and what
// a pod is given so that its containers can show one.
//
// keys.go, claims.go and signer.go make and read signed tokens and know nothing
// of the cluster. issuer.go answers requests for tokens, authenticator.go says
// whom a token stands for now, discovery.go lets others verify it (OpenID
// Connect Discovery). content.go is what every namespace has, keeper.go puts it
// back whenever it is missing, secrets.go fills the older tokens that are kept
// in secrets, and pods.go is the admission of pods.
package serviceaccount
