// Package measure is what the benchmark programs share: what a process has used
// (Linux's /proc and process clocks), what a machine is, medians, and results
// put between the marks of a report that people write the rest of.
package measure
