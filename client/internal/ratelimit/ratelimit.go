// Package ratelimit says which requests do not wait for a client's rate limiter.
package ratelimit

import "context"

type exemptKey struct{}

// Exempt returns a context whose requests are sent at once: few, and of no use when they are late.
func Exempt(ctx context.Context) context.Context { return context.WithValue(ctx, exemptKey{}, true) }

// IsExempt reports whether the requests of a context are.
func IsExempt(ctx context.Context) bool {
	exempt, _ := ctx.Value(exemptKey{}).(bool)
	return exempt
}
