// Package relay runs a relay of Levelwire in front of a server made of the upstream
// libraries, and on the relay client-go's informers, controller-runtime's manager and a tour
// with the kubectls that LEVELWIRE_KUBECTL names.
package relay
