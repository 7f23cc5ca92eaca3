// Command nodesday lives like the kubelets and controllers of a very large cluster: leases
// that are renewed, nodes and pods whose status is written, pods that are replaced by rolling
// restarts, EndpointSlices that follow, a watch of each node for its pods, and controllers
// that watch everything. The flags say how many nodes there are and which share of their real
// rate they write at, because 100,000 nodes at the full rate do not fit on one machine.
//
// For each server it prints what was asked and answered, how long events took to watchers'
// sockets, what was refused, processor time and memory, and with -steps, which double the
// rate each time, what broke first. The server of the upstream libraries has neither nodes nor
// EndpointSlices, which are left out there.
//
// docs/contributors/nodes-day.md has results, and what follows from them for the full rate.
//
// Reading order: day.go (which writes a cluster makes, as arithmetic), objects.go (what is
// written), writes.go and watches.go (clients), phase.go (one measurement), plan.go, report.go.
package main
