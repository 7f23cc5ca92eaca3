// Package profiling serves the process's own profiles to authorized users.
package profiling
