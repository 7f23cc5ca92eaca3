// Package proxy keeps the table a service proxy programs the network from:
// for each address and port of a Service, the ready endpoints behind it. It
// watches Services and EndpointSlices through client/informer and forwards no
// packet.
package proxy
