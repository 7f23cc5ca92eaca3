// Package pki makes what a server needs to speak TLS the first time it
// starts: a certificate authority of its own, a serving certificate, an
// administrator's client certificate, and the kubeconfig that holds it. Files
// that exist are kept, so that kubeconfigs stay valid over restarts.
package pki
