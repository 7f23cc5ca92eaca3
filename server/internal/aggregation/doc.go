// Package aggregation finds the servers behind APIServices: which group and version is
// another server's, at which endpoints of which Service it listens, how it is connected
// to, whether it answers, and what it serves. It writes what it finds into the condition
// Available of each APIService.
//
// A group and version that this server serves itself is never another server's, whatever
// an APIService says. AutoRegister writes the APIServices that say so.
package aggregation
