// Package read tests the cached reader of the client against a real server;
// tests only.
package read
