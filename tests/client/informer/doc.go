// Package informer tests informers, and runs their examples, against a real
// server; tests only.
package informer
