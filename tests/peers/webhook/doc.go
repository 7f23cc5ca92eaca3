// Package webhook has kube-apiserver's own code call the webhooks of
// client/webhook; tests only.
package webhook
