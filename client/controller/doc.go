// Package controller is the frame of a controller: it watches objects, turns
// what happens to them into keys, and has workers bring what the keys name to
// the state that is wanted. A new controller is a [ReconcileFunc] and the lines that say
// what it watches:
//
//	c, err := controller.New(reconcile, controller.Options{Name: "greeter"})
//	controller.For(c, greetings)                  // the objects themselves
//	controller.Owns[*v1.Greeting](c, configMaps) // what belongs to them
//	err = controller.Run(ctx, controller.RunOptions{Factory: factory}, c)
//
// Keys are of type [Key], a namespace and a name, or of any comparable type: see
// [NewTyped] and, for several clusters, [InCluster]. Watches may be added and
// removed while the controller runs: see [Registration].
//
// A ReconcileFunc never acts on an event, only on the present state, and is level
// triggered: many changes become one call. A key is never with two workers at
// once. A call that fails or panics is repeated with a back-off of its own
// key's; what changes while the program runs goes before what the first lists
// held, so that ten thousand old objects do not delay a new one.
//
// Each informer has a watch of its own, and any of them may be behind the others: [Consistent]
// waits until all that the controller reads are of one moment, before a decision about
// what is not there.
//
// A cache may be behind the controller's own writes. Where that matters,
// [Expectations] report whether creations and deletions have been seen,
// [WriteTracker] whether an update has, and WaitForResourceVersion of an
// informer waits for one write. A write that is guarded by the resourceVersion
// it was decided on needs none of them.
package controller
