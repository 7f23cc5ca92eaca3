// Package webhook is the admission plugins MutatingAdmissionWebhook and
// ValidatingAdmissionWebhook: users' servers that change or refuse what others write
// (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/).
//
//	configurations.go follows the configurations and compiles their webhooks, once for each change
//	request.go        a write as webhooks see it: in each version, encoded once
//	conditions.go     match conditions
//	review.go         AdmissionReview, v1 and v1beta1
//	call.go           one call: its deadline, its verdict, its metrics
//	mutate.go         the mutating webhooks, one after the other, and their reinvocation
//	validate.go       the validating webhooks, at the same time
//
// No lock is held during a call, and a call ends with its timeoutSeconds or with its
// request, so that a webhook that hangs delays only the requests that it is asked about.
package webhook
