// Package podstream tests streams of pods against a real server; tests only.
package podstream
