package main

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/levelwire/levelwire/benchmarks/hostile/attacks"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// TestWrongFlags: a value with which nothing can be measured is refused before anything
// runs, in one line that names the flag.
func TestWrongFlags(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	valid := func() plan {
		return plan{duration: time.Minute, sides: []string{tested.Ours, tested.Upstream}, scale: 1, objects: 1, only: attacks.Names()[:2], levelwire: program}
	}
	p := valid()
	if err := p.validate(nil); err != nil {
		t.Errorf("valid flags: %v", err)
	}
	for _, tt := range []struct {
		name      string
		change    func(*plan)
		arguments []string
		flag      string
	}{
		{"an unknown server", func(p *plan) { p.sides = []string{"nope"} }, nil, "sides"},
		{"no server", func(p *plan) { p.sides = nil }, nil, "sides"},
		{"an unknown attack", func(p *plan) { p.only = []string{"nope"} }, nil, "attacks"},
		{"no time", func(p *plan) { p.duration = 0 }, nil, "duration"},
		{"negative time before", func(p *plan) { p.quiet = -1 }, nil, "quiet"},
		{"negative time after", func(p *plan) { p.after = -1 }, nil, "after"},
		{"no attacks", func(p *plan) { p.scale = 0 }, nil, "rate"},
		{"a rate that is not a number", func(p *plan) { p.scale = math.NaN() }, nil, "rate"},
		{"negative objects", func(p *plan) { p.objects = -1 }, nil, "objects"},
		{"a program that is not there", func(p *plan) { p.levelwire = program + "-nope" }, nil, "levelwire"},
		{"an argument", func(*plan) {}, []string{"nope"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := valid()
			tt.change(&p)
			var usage *process.UsageError
			if err := p.validate(tt.arguments); !errors.As(err, &usage) || usage.Flag != tt.flag || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want an error of -%s", err, tt.flag)
			}
		})
	}
}

// TestHeldConnectionsMeetALimit, if there is no other attack.
func TestHeldConnectionsMeetALimit(t *testing.T) {
	for _, tt := range []struct {
		only []string
		want string
	}{
		{nil, "--token-auth-file f"},
		{[]string{attacks.Held, "readyz"}, "--token-auth-file f"},
		{[]string{attacks.Held}, "--token-auth-file f --max-connections 256"},
	} {
		p := plan{only: tt.only}
		if got := strings.Join(p.serverFlags("f"), " "); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.only, got, tt.want)
		}
	}
}
