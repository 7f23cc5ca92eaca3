package main

import (
	"context"
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

func main() { process.Main("neighbours", nil, run) }

func run(ctx context.Context) error {
	var p plan
	var works string
	flag.DurationVar(&p.quiet, "quiet", 30*time.Second, "how long each phase without work is")
	flag.DurationVar(&p.least, "least", 30*time.Second, "how long definitions change, and a webhook hangs; work that ends is repeated for as long")
	flag.IntVar(&p.objects, "objects", 100_000, "ConfigMaps that are deleted")
	flag.StringVar(&works, "work", strings.Join(names(), ","), "what is measured")
	flag.StringVar(&p.command, "command", "serve", "serve: the server and the controllers are two processes; up: one")
	flag.StringVar(&p.levelwire, "levelwire", "bin/levelwire", "the program that is measured")
	flag.StringVar(&p.profiles, "profiles", "", "a folder for profiles and traces of the server during the work")
	flag.Parse()
	p.works = process.Words(works)
	if err := p.validate(flag.Args()); err != nil {
		return err
	}
	return p.run(ctx)
}

// validate returns what is wrong with the flags and arguments of the command. It makes the
// paths absolute.
func (p *plan) validate(arguments []string) (err error) {
	for _, work := range p.works {
		if !slices.Contains(names(), work) {
			return process.WrongFlag("work", "there is no work %q, only %s", work, strings.Join(names(), ", "))
		}
	}
	if p.levelwire, err = tested.Program(p.levelwire); err != nil {
		return err
	}
	if p.profiles != "" {
		if p.profiles, err = filepath.Abs(p.profiles); err != nil {
			return err
		}
	}
	switch {
	case len(p.works) == 0:
		return process.WrongFlag("work", "name some: %s", strings.Join(names(), ", "))
	case p.quiet <= 0:
		return process.WrongFlag("quiet", "%v must be longer than nothing", p.quiet)
	case p.least <= 0:
		return process.WrongFlag("least", "%v must be longer than nothing", p.least)
	case p.objects <= 0:
		return process.WrongFlag("objects", "%d must be above 0", p.objects)
	case p.command != "serve" && p.command != "up":
		return process.WrongFlag("command", "%q is neither serve nor up", p.command)
	}
	return process.NoArguments(arguments)
}
