// Package workload is what tests do to servers that suffer faults, and how they notice
// what went wrong: writers that know what was acknowledged, and informers of every kind
// whose handlers notice an event that does not follow from those before.
package workload
