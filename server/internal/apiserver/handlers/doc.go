// Package handlers carries out the verbs on objects but watch: it reads what a request
// sends, has package read or registry carry it out, and writes the answer. The request
// has been resolved and authorized (package apiserver), and so has a difference.
//
//	get.go list.go difference.go    reads
//	write.go patch.go delete.go     writes of objects; body.go: what their bodies may be
//	subresource.go token.go         status, scale, binding, eviction; tokens
//	unstored.go                     kinds that are in no store
//	review.go componentstatus.go    reviews, which are such kinds; component statuses
//
// Watches are package watchstream's: what they hold while they are open is decided by
// package apiserver.
package handlers
