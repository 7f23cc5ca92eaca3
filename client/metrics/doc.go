// Package metrics exports what clients, informers, controllers, work queues, event
// recorders and leader elections count to Prometheus. It registers nothing by itself: the
// collectors it makes go into whatever registry the program has. Counting costs
// nothing more than it does without them, except for [Requests]; the numbers are
// read when Prometheus scrapes.
//
//	requests := metrics.NewRequests() // also client.Options.Observer
//	registry.MustRegister(requests, metrics.Informers(factory), metrics.Controller(c), metrics.Leader("greeter", elector.Stats))
//
// What client-go or controller-runtime have has their names and labels, so that
// dashboards and alerts go on working: workqueue_*, rest_client_*,
// controller_runtime_* and leader_election_*. What they do not have begins with
// levelwire_. The Grafana dashboard docs/operators/grafana-controllers.json shows
// both.
package metrics
