// Package noderestriction is the admission plugin NodeRestriction: it refuses what the
// Node authorizer has to allow because it does not see the objects that are written
// (https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction).
//
// A node changes its own Node and the objects that are named after it, the status of the
// pods that are bound to it, and ends these pods. It creates mirror pods, which lead to no
// other object, and gets tokens for the service accounts of its pods.
//
// admission.go decides which check a write needs; the other files are the checks, by kind.
package noderestriction
