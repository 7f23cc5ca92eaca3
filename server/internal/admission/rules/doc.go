// Package rules decides which requests the rules of admission webhooks and admission
// policies match: operations, resources, names, scope, and the selectors of objects and of
// namespaces. The source is the documentation of admissionregistration.k8s.io/v1.
package rules
