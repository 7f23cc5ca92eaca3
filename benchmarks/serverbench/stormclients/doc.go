// Package stormclients runs the clients of storms: a herd of informers in one
// process, and an informer of all pods of each library in a process of its own.
// All can be cut off from the server and let go again at once.
package stormclients
