// Package websocket carries watches over WebSockets (RFC 6455), as browsers need
// it: one message for each event.
package websocket
