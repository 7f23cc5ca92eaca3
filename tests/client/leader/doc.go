// Package leader tests leader election against a real server; tests only.
package leader
