// Package serviceaccount is the identity of programs in the cluster: the accounts
// that every namespace has, their tokens, and the volume by which a pod's
// containers get a token.
//
// keys.go, keyring.go, claims.go and signer.go make and read signed tokens; they do
// not know the cluster. issuer.go answers requests for tokens, authenticator.go
// authenticates users by them, discovery.go lets other systems verify them (OpenID
// Connect Discovery). content.go has the defaults of every namespace, keeper.go
// restores them whenever they are missing, manager.go leaves one of them to a
// kube-controller-manager, secrets.go fills in the legacy tokens in secrets, pods.go
// is the admission of pods, and mountable.go refuses what they may not refer to.
package serviceaccount
