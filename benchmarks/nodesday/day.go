package main

// day is a cluster and the share of its real rate at which it writes.
type day struct {
	nodes, podsPerNode      int
	rate, restarts, proxies float64
}

// Real rates, as kubelets and controllers have them by default.
const (
	leaseInterval  = 10.0  // seconds between renewals of a node's lease
	statusInterval = 300.0 // seconds between writes of a node's status although nothing changes
	secondsOfDay   = 86_400.0
	podsPerSlice   = 100 // endpoints of an EndpointSlice, and pods of a Service
	// A pod that is replaced costs: its successor is created, bound, accepted and running, it
	// is reported as ended itself, and deleted; its endpoint goes, and another one comes.
	statusesPerRestart = 4
	slicesPerRestart   = 2
)

// The kinds of writes.
const (
	leases   = "lease"
	nodes    = "node status"
	statuses = "pod status"
	creates  = "pod create"
	deletes  = "pod delete"
	slicesOf = "endpoint slice"
)

var kinds = []string{leases, nodes, creates, statuses, deletes, slicesOf}

func (d *day) pods() int   { return d.nodes * d.podsPerNode }
func (d *day) slices() int { return max(d.pods()/podsPerSlice, 1) }

// restartsPerSecond is how many pods are replaced.
func (d *day) restartsPerSecond() float64 {
	return float64(d.pods()) * d.restarts / secondsOfDay * d.rate
}

// perSecond is how many writes of each kind are due.
func (d *day) perSecond() map[string]float64 {
	restarts := d.restartsPerSecond()
	return map[string]float64{
		leases: float64(d.nodes) / leaseInterval * d.rate, nodes: float64(d.nodes) / statusInterval * d.rate,
		creates: restarts, statuses: statusesPerRestart * restarts, deletes: restarts, slicesOf: slicesPerRestart * restarts,
	}
}

// watching is how many watchers of a kind of object there are, beside those of the nodes.
const controllers = 3

// proxyWatches is how many watches of all EndpointSlices there are.
func (d *day) proxyWatches() int { return int(float64(d.nodes) * d.proxies) }
