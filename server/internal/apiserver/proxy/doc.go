// Package proxy passes requests on to other servers: aggregated servers, and the upstream
// of a relay. They learn the user by headers, and never get the client's credentials. An
// answer that breaks off breaks the client's connection, so that it is not taken for whole.
//
// Whether a request may be passed on, and what it may take meanwhile, is decided by
// package apiserver.
package proxy
