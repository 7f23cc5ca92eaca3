// Package auth is who sends a request and what they may do: the values and the
// small interfaces between the server, which asks, and whoever knows.
//
// user.go is the identity that a request carries, authenticator.go who knows
// what bearer tokens stand for, authorizer.go who decides what a user may do,
// and tokenfile.go the tokens of a file. Certificates are verified where they
// arrive, in apiserver; the tokens of service accounts in serviceaccount.
package auth
