// Command flamegraph draws CPU profiles as flame graphs in SVG, for docs/contributors/benchmarks:
// what a server spends its time on can be seen there without a tool.
//
//	flamegraph -title "list, 200,000 pods" cpu.pprof > list.svg
//
// Frames that take less than half a percent are left out, so that the files stay
// small enough to read as text and to compare.
package main
