// Package inflight is what the requests of a server hold at the same time: their slots,
// which they give back while their clients do not read (Slots), and shares of bytes in
// memory (Limiter). The seats of a slot come from package fairqueue: with Kubernetes'
// priority and fairness from its levels, without it from shares of the users (UserSeats).
package inflight
