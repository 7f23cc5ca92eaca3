// Package metrics exports the counts of informers and work queues to
// Prometheus. It registers nothing by itself: the collectors it makes go into
// whatever registry the program has. Counting costs nothing more than it does
// without them; the numbers are read when Prometheus scrapes.
//
//	registry.MustRegister(metrics.Informers(factory), metrics.Queue("pods", queue.Stats))
package metrics
