// Package apiserver serves the Kubernetes API over HTTP: it turns a request into a
// verb on a resource, has package read or registry carry it out, and writes the
// answer. What a read or a write means is decided there and not here.
//
// A request passes, in this order:
//
//	serve.go          listeners, HTTP/2, TLS, the drain
//	filters.go        record, panics, authentication, impersonation
//	earlyanswer.go    errors that come before the end of a body over HTTP/1.1
//	limits.go         slots, memory for bodies, deadline; fairness.go: seats
//	server.go         route: objects, differences, or documents about the server
//	dispatch.go       resolve, authorize, and the verb's handler: watch.go, or package handlers
//	aggregated.go     requests that another server answers; upstream.go: those of a relay
//
// Each part that can be understood alone is a package below:
//
//	request           what a request asks for, and the record of its answer
//	authentication    which user sends it
//	authorization     what the user may do; impersonation; reviews
//	inflight          slots, and what else requests hold, divided among users
//	encoding          negotiation, and every form of an answer
//	handlers          the verbs on objects but watch
//	proxy             requests that another server answers
//	watchstream       the events of open watches, to the connection
//	websocket         the same over WebSockets
//	discovery         groups, resources, OpenAPI, the version
//	metrics, health, profiling
//
// The packages below import each other from the bottom up (request, encoding, the
// others) and never this one.
package apiserver
