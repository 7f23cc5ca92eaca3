package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/levelwire/levelwire/benchmarks/hostile/attacks"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

func main() { process.Main("hostile", roles, run) }

var roles = map[string]process.Role{"etcd": tested.ServeEtcd, "peer": tested.ServeUpstream, "attack": attack}

func run(ctx context.Context) error {
	var p plan
	var sides, only string
	var crowding bool
	flag.DurationVar(&p.duration, "duration", time.Minute, "how long each server is measured: a sixth quiet, two thirds under attack, a sixth after")
	flag.DurationVar(&p.quiet, "quiet", 0, "how long each server is measured before the attacks, in place of a sixth of -duration: all clients have measured 1,000 times after 3m20s")
	flag.DurationVar(&p.after, "after", 0, "how long each server is measured after the attacks, in place of a sixth of -duration; memory is judged if it is at least "+memoryBack.String())
	flag.StringVar(&sides, "sides", tested.Ours+","+tested.Upstream, "the servers to measure")
	flag.Float64Var(&p.scale, "rate", 1, "factor for the rates of all attacks: attackers share the machine with the server, which is what is to be measured")
	flag.IntVar(&p.objects, "objects", 2000, "ConfigMaps of 1 kB that are listed")
	flag.StringVar(&only, "attacks", "", "names of attacks between semicolons; empty: all of "+strings.Join(attacks.Names(), "; "))
	flag.BoolVar(&crowding, "crowding", false, "only what one restricted user can ask for, and not what is malformed: "+strings.Join(attacks.Crowding(), "; ")+
		fmt.Sprintf("; a p99 within %v times the quiet one is promised then", promisedOfCrowding))
	flag.StringVar(&p.levelwire, "levelwire", "bin/levelwire", "the program whose server is measured")
	flag.BoolVar(&p.profiling, "profiling", false, "have our server serve profiles")
	flag.Parse()
	p.sides = process.Words(sides)
	if only != "" {
		p.only = strings.Split(only, ";")
	}
	p.promised = promisedLatency
	if crowding {
		p.only, p.promised = append(p.only, attacks.Crowding()...), promisedOfCrowding
	}
	if err := p.validate(flag.Args()); err != nil {
		return err
	}
	return p.run(ctx)
}
