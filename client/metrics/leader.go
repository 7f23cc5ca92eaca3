package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/levelwire/levelwire/client/leader"
)

// Leader returns a collector of a candidate for a Lease: with client-go's metrics
// leader_election_master_status and leader_election_slowpath_total, and
// levelwire_leader_* for what it did. name is usually that of the Lease; each
// candidate of a registry needs its own. read is the Stats method of a
// leader.Elector.
func Leader(name string, read func() leader.Stats) prometheus.Collector {
	l := &statsCollector[leader.Stats]{read: read}
	describe := func(metric, help string) *prometheus.Desc {
		return prometheus.NewDesc(metric, help, nil, prometheus.Labels{"name": name})
	}
	l.numbers.gauge(describe("leader_election_master_status", "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master."),
		func(s leader.Stats) float64 { return truth(s.Leading) })
	l.numbers.counter(describe("leader_election_slowpath_total", "Total number of slow path exercised in renewing leader leases."), func(s leader.Stats) uint64 { return s.SlowRenewals })
	l.numbers.counter(describe("levelwire_leader_acquired_total", "Times this candidate became leader."), func(s leader.Stats) uint64 { return s.Acquired })
	l.numbers.counter(describe("levelwire_leader_lost_total", "Times it lost leadership."), func(s leader.Stats) uint64 { return s.Lost })
	l.numbers.counter(describe("levelwire_leader_renewals_total", "Writes of the Lease that succeeded."), func(s leader.Stats) uint64 { return s.Renewals })
	l.numbers.counter(describe("levelwire_leader_failures_total", "Attempts to read or write the Lease that failed."), func(s leader.Stats) uint64 { return s.Failures })
	l.numbers.counter(describe("levelwire_leader_panics_total", "Calls of OnNewLeader that panicked."), func(s leader.Stats) uint64 { return s.Panics })
	return l
}
