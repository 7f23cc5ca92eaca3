// Package policy makes ValidatingAdmissionPolicies and MutatingAdmissionPolicies act on
// the requests that their bindings name (admissionregistration.k8s.io/v1, KEP-3488 and
// KEP-3962).
//
// policies.go follows the caches of the four kinds, index.go finds the policies of a
// request, compile.go has their expressions. call.go is one request as policies see it;
// validate.go and mutate.go decide about it.
package policy
