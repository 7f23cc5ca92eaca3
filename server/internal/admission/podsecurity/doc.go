// Package podsecurity is the admission plugin PodSecurity: it applies the Pod Security
// Standards to namespaces whose labels ask for that.
//
// The standards themselves, their versions and the meaning of the labels are those of
// k8s.io/pod-security-admission. Its admission package is not used: it would link the
// generated clients of client-go. plugin.go decides about pods and what makes pods,
// namespaces.go about labels, config.go reads defaults and exemptions.
//
// Source: https://kubernetes.io/docs/concepts/security/pod-security-admission/
package podsecurity
