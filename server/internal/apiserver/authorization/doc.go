// Package authorization refuses requests that a user may not make, decides
// which users may impersonate others, and answers the reviews that ask what a
// user may do. The decisions themselves come from an auth.Authorizer.
//
// impersonate.go reads the headers and asks; alternatives.go says which rights it takes to
// be a user.
package authorization
