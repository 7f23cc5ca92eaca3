package main

import (
	"context"
	"flag"
	"slices"
	"time"

	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

func main() { process.Main("nodesday", roles, run) }

var roles = map[string]process.Role{"etcd": tested.ServeEtcd, "peer": tested.ServeUpstream}

func run(ctx context.Context) error {
	var p plan
	var sides string
	flag.IntVar(&p.day.nodes, "nodes", 10_000, "nodes, each with a lease and a watch of its pods")
	flag.IntVar(&p.day.podsPerNode, "pods-per-node", 10, "pods of each node")
	flag.Float64Var(&p.day.rate, "rate", 0.1, "share of the real rate at which all of them write; 1: a lease is renewed every 10 s")
	flag.Float64Var(&p.day.restarts, "restarts", 1, "how often a pod is replaced in a day")
	flag.Float64Var(&p.day.proxies, "proxies", 0.001, "share of the nodes that watch all EndpointSlices, as kube-proxy does on each node")
	flag.IntVar(&p.steps, "steps", 1, "how many times to measure, each time with twice the rate, until something breaks")
	flag.DurationVar(&p.duration, "duration", 30*time.Second, "how long each step is")
	flag.IntVar(&p.perConnection, "nodes-per-connection", 100, "nodes whose watches share a connection; 1 is what real nodes do")
	flag.StringVar(&sides, "sides", tested.Ours+","+tested.Upstream, "the servers to measure")
	flag.StringVar(&p.levelwire, "levelwire", "bin/levelwire", "the program whose server is measured")
	flag.Parse()
	p.sides = process.Words(sides)
	if err := p.validate(flag.Args()); err != nil {
		return err
	}
	return p.run(ctx)
}

// validate returns what is wrong with the flags and arguments. It makes the path absolute.
func (p *plan) validate(arguments []string) (err error) {
	if err := tested.CheckSides(p.sides); err != nil {
		return err
	}
	if p.levelwire, err = tested.Program(p.levelwire); err != nil && slices.Contains(p.sides, tested.Ours) {
		return err
	}
	d := &p.day
	switch {
	case d.nodes <= 0 || d.podsPerNode <= 0:
		return process.WrongFlag("nodes", "there must be a node and a pod")
	case !(d.rate > 0): // or it is not a number
		return process.WrongFlag("rate", "%v must be above 0", d.rate)
	case !(d.restarts >= 0):
		return process.WrongFlag("restarts", "%v must not be negative", d.restarts)
	case !(d.proxies >= 0 && d.proxies <= 1):
		return process.WrongFlag("proxies", "%v is not a share: 0 to 1", d.proxies)
	case p.steps <= 0:
		return process.WrongFlag("steps", "%d must be above 0", p.steps)
	case p.duration <= 0:
		return process.WrongFlag("duration", "%v must be longer than nothing", p.duration)
	case p.perConnection <= 0 || p.perConnection > 400:
		return process.WrongFlag("nodes-per-connection", "%d is not within 1 and 400: servers allow a connection so many streams", p.perConnection)
	}
	return process.NoArguments(arguments)
}
