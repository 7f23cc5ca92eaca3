// Package childprocess starts processes that end when this one does, however it
// ends: tests, benchmarks and tools start servers with it, and a test binary that
// panics or is killed leaves none of them behind.
//
// On Linux, the kernel kills any program that was started here. On other systems only
// programs that import this package end, as a test binary does that is its own
// child.
package childprocess
