// Package eventratelimit is the admission plugin EventRateLimit: it refuses events beyond
// the rates that the operator's configuration allows for the server, a namespace, a user,
// or the events of one source about one object.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#eventratelimit
package eventratelimit
