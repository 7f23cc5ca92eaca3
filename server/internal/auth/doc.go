// Package auth has the identity of users, and the interfaces by which the server
// asks for authentication and authorization.
//
// user.go is the identity that a request carries, authenticator.go authenticates
// bearer tokens, authorizer.go decides what a user may do, and tokenfile.go reads
// the tokens of a file. Client certificates are verified in apiserver, the tokens
// of service accounts in serviceaccount.
package auth
