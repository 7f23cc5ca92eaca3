// Package controller runs the controllers: the loops that make what is match
// what is asked for. Each runs in the frame of client/controller and lives in
// a package below this one; this package only starts them, on one shared set
// of informers.
//
// All follow the same rules. They act on the present state and never on an
// event. Every write is guarded by the state it was decided on; losing that
// race means coming back with the newer state. Killed at any point they go on
// from what the server holds.
package controller
