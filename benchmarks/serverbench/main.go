package main

import (
	"context"
	"flag"

	"github.com/levelwire/levelwire/benchmarks/serverbench/baretls"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/stormclients"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// groups is all there is to measure, in the order of the report.
func groups(p *plan) []*group {
	return []*group{
		fillGroup(), memoryGroup(), listGroup(), partGroup(p), streamGroup(), concurrentGroup(), writeGroup(), updateGroup(),
		fanoutGroup(), sustainGroup(), slowGroup(), selectorsGroup(), dispatchGroup(), idleGroup(), scalingGroup(p),
		stormGroup(p),
	}
}

// roles are what a child process can be, each the whole work of one.
var roles = map[string]process.Role{
	"seed":   seed,
	"etcd":   tested.ServeEtcd,
	"peer":   tested.ServeUpstream,
	"bare":   baretls.Serve,
	"sink":   baretls.Sink,
	"get":    get,
	"part":   part,
	"create": create,
	"update": update,
	"puts":   puts,
	"crowd":  crowd, "writer": writer, "spread": baretls.Spread, "drain": baretls.Drain,
	"herd": stormclients.RunHerd, "library": stormclients.RunLibrary, "forget": forget,
}

func main() { process.Main("serverbench", roles, run) }

func run(ctx context.Context) error {
	var p plan
	var sides, rows string
	flag.IntVar(&p.pods, "pods", 200_000, "pods that the servers hold")
	flag.IntVar(&p.repeat, "repeat", 3, "how often everything is measured; what takes upstream minutes is measured once")
	flag.IntVar(&p.informers, "informers", 2000, "informers in storms")
	flag.IntVar(&p.everything, "everything", 20, "how many of them watch all pods, and not those of a node")
	flag.StringVar(&sides, "sides", tested.Ours+","+tested.Upstream, "the servers to measure")
	flag.StringVar(&rows, "rows", "", "the groups to measure; empty: all but storm")
	flag.StringVar(&p.report, "report", "", "the page whose results are replaced, of those groups that were measured with both servers; empty: none")
	flag.StringVar(&p.data, "data", "", "a file for what was measured, as JSON; empty: none")
	flag.StringVar(&p.levelwire, "levelwire", "bin/levelwire", "the program whose server is measured")
	flag.StringVar(&p.profiles, "profiles", "", "a folder for profiles of our server's processor time, one for each row; they cost a little time")
	flag.Parse()
	p.sides, p.groups = process.Words(sides), process.Words(rows)
	return p.run(ctx)
}
