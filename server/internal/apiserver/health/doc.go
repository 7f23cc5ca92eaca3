// Package health answers /healthz, /livez and /readyz as Kubernetes' servers do.
package health
