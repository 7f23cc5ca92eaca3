// Package process runs parts of a benchmark as child processes, so that their
// processor time and memory can be measured apart from each other's.
//
// A child is another program (Execute) or this one in a role (Start), which
// exchanges values of JSON with its parent over standard input and output.
package process
