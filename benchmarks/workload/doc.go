// Package workload makes the pods that the benchmarks list, watch and write.
package workload
