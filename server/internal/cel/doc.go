// Package cel compiles the CEL expressions of admission policies and of match conditions,
// and evaluates them. The environment (variables, libraries, costs) is that of Kubernetes,
// from k8s.io/apiserver/pkg/cel.
//
// Thousands of policies share what is equal: environments with the same variables, the
// table of functions, and the Programs of equal expressions. A compiled expression is only
// its tree of instructions, some hundred bytes for each operator.
package cel
