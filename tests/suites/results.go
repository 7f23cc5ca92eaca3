package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"
)

// result is what came of a suite.
type result struct {
	Module    string  `json:"module"`
	Version   string  `json:"version"`
	Packages  int     `json:"packages"` // that were run
	Levelwire sideSum `json:"levelwire"`
	// Real is on kube-apiserver and etcd, if these were there.
	Real *sideSum `json:"kubeAPIServer,omitempty"`
}

// sideSum is the sum of all packages on one side.
type sideSum struct {
	counts
	Seconds float64 `json:"seconds"` // without compiling
}

func (s *sideSum) add(o *outcome) {
	s.counts.add(o.counts)
	s.Seconds = math.Round(100*(s.Seconds+o.took.Seconds())) / 100
}

func newResult(s *suite, packages int, real bool) *result {
	r := &result{Module: s.Module, Version: s.Version, Packages: packages}
	if real {
		r.Real = new(sideSum)
	}
	return r
}

// sentence is for whoever waits for the suite.
func (r *result) sentence() string {
	said := sentence(r.Levelwire.counts, seconds(r.Levelwire.Seconds))
	if r.Real != nil {
		said += fmt.Sprintf(" (kube-apiserver: %d failed, in %.1f s)", r.Real.Failed, r.Real.Seconds)
	}
	return said
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// results are those of all runs so far, by the name of the suite.
type results map[string]*result

// readResults reads a file of results. There may be none yet.
func readResults(file string) (results, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return results{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the results so far: %w", err)
	}
	r := results{}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s, the results so far: %w (remove it to begin anew)", file, err)
	}
	return r, nil
}

// add takes over the result of a suite. What came of the same version on the real programs stays
// when it was run without them.
func (r results) add(name string, found *result) {
	before := r[name]
	if found.Real == nil && before != nil && before.Module == found.Module && before.Version == found.Version {
		found.Real = before.Real
	}
	r[name] = found
}

func (r results) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}
