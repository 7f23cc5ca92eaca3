package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
)

func main() { process.Main("upstreambench", nil, run) }

func run(ctx context.Context) error {
	var p plan
	var pods, nodes, sides string
	flag.StringVar(&pods, "pods", "1000,5000", "how many pods the Deployment has, once for each number")
	flag.StringVar(&nodes, "nodes", "100", "nodes that they are bound to, once for each number")
	flag.IntVar(&p.repeat, "repeat", 1, "how often everything is measured, in turns")
	flag.Float64Var(&p.probes, "probes", 20, "how many ConfigMaps are updated in a second, to measure a watch")
	flag.DurationVar(&p.limit, "limit", 30*time.Minute, "how long the pods may take to be bound, and to be gone")
	flag.StringVar(&sides, "sides", strings.Join(allSides, ","), "the servers to measure")
	flag.StringVar(&p.binaries, "binaries", "bin", "folder of levelwire, kube-apiserver, etcd, kube-controller-manager and kube-scheduler")
	flag.StringVar(&p.report, "report", "", "the page whose tables of these sizes are replaced, if both servers are measured; empty: none")
	flag.Parse()
	p.sides = process.Words(sides)
	if err := p.validate(pods, nodes, flag.Args()); err != nil {
		return err
	}
	return p.run(ctx)
}

// validate returns what is wrong with the flags and arguments. It makes the path absolute.
func (p *plan) validate(pods, nodes string, arguments []string) (err error) {
	if p.pods, err = numbers("pods", pods); err != nil {
		return err
	}
	if p.nodes, err = numbers("nodes", nodes); err != nil {
		return err
	}
	if p.binaries, err = filepath.Abs(p.binaries); err != nil {
		return err
	}
	for _, side := range p.sides {
		if !slices.Contains(allSides, side) {
			return process.WrongFlag("sides", "there is no server %q, only %s", side, strings.Join(allSides, " and "))
		}
	}
	switch {
	case len(p.sides) == 0:
		return process.WrongFlag("sides", "name a server: %s", strings.Join(allSides, " or "))
	case p.repeat <= 0:
		return process.WrongFlag("repeat", "%d must be above 0", p.repeat)
	case !(p.probes > 0 && p.probes <= 1000): // or it is not a number
		return process.WrongFlag("probes", "%v is not within 0 and 1000", p.probes)
	case p.limit <= 0:
		return process.WrongFlag("limit", "%v must be longer than nothing", p.limit)
	}
	for _, program := range p.programs() {
		if _, err := os.Stat(filepath.Join(p.binaries, program)); err != nil {
			return process.WrongFlag("binaries", "%v: build it with `make build judge components`", err)
		}
	}
	if err := p.checkReport(); err != nil {
		return err
	}
	return process.NoArguments(arguments)
}

// numbers reads numbers above 0 from the list of a flag.
func numbers(flag, list string) (all []int, err error) {
	for _, word := range process.Words(list) {
		n, err := strconv.Atoi(word)
		if err != nil || n <= 0 {
			return nil, process.WrongFlag(flag, "%q is not a number above 0", word)
		}
		all = append(all, n)
	}
	if len(all) == 0 {
		return nil, process.WrongFlag(flag, "there must be one at least")
	}
	return all, nil
}
