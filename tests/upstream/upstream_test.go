package upstream

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/tests/upstream/cluster"
)

var (
	binaries = flag.String("upstream.binaries", "", "folder of levelwire, kubectl, etcd and Kubernetes' components; without it TestUpstream is skipped")
	only     = flag.String("upstream.flows", "", "names of the flows to run, separated by commas; empty: all")
	failing  = flag.String("upstream.faults", "", "what fails on Levelwire's side while the flows run, or how it runs: "+variantNames()+"; empty: one server, and nothing fails")
	keep     = flag.String("upstream.keep", "", "folder for the files and logs of the servers and components; empty: one that is removed")
)

// result is what came of all flows on a server.
type result struct {
	objects map[string][][]object     // by flow and step that compares
	errors  map[string]map[string]int // by component and line
}

// TestUpstream: with Kubernetes' own components, flows end on Levelwire as on kube-apiserver, and the
// components log no errors that they do not log there, nor far more of them. With faults, of which kube-apiserver has none, the flows end
// the same; errors are counted, and which there are is chance.
func TestUpstream(t *testing.T) {
	if *binaries == "" {
		t.Skip("make test-upstream builds the components and runs this")
	}
	flows := chosenFlows(t)
	v, known := variants[*failing]
	if !known {
		t.Fatalf("-upstream.faults=%s is none of %s", *failing, variantNames())
	}
	theirs := runAll(t, "kube-apiserver", variant{start: (*cluster.Cluster).StartKubeAPIServer}, flows, nil)
	var ends map[string][][]object
	if !v.logsCompared {
		ends = theirs.objects
	}
	ours := runAll(t, "levelwire", v, flows, ends)
	for _, f := range flows {
		t.Run(f.name, func(t *testing.T) {
			mine, ran := ours.objects[f.name]
			others, ranToo := theirs.objects[f.name]
			if !ran || !ranToo {
				t.Fatalf("it ran on Levelwire: %v, on kube-apiserver: %v", ran, ranToo)
			}
			for i, objects := range mine { // both have run all steps
				for _, d := range differences(objects, others[i]) {
					t.Error(d)
				}
			}
		})
	}
	for component, lines := range ours.errors {
		t.Run("errors of "+component, func(t *testing.T) {
			if !v.logsCompared {
				t.Log(describeWithFaults(lines, theirs.errors[component]))
				return
			}
			for line, count := range lines {
				t.Logf("%d times on Levelwire, %d on kube-apiserver: %s", count, theirs.errors[component][line], line)
			}
			for _, c := range complaints(component, lines, theirs.errors[component]) {
				t.Error(c)
			}
		})
	}
}

// runAll starts a server and the components, runs all flows one after another, and stops what it started. ends are what
// flows are to end with: see flow.run.
func runAll(t *testing.T, server string, v variant, flows []flow, ends map[string][][]object) result {
	t.Helper()
	c := cluster.New(server, absolute(t, *binaries), clusterFolder(t, server))
	c.RestartComponents, c.ComponentFlags = v.fault != nil, v.flags
	t.Cleanup(c.Stop)
	if err := v.start(c, t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.StartComponents(), c.StartSimulatedNodes(), c.StartHollowKubelet(), c.StartHollowProxy()); err != nil {
		t.Fatal(err)
	}
	if err := c.AwaitNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	k := &kubectl{cluster: c, folder: absolute(t, "testdata"), repeats: v.kubectlFails, eventsLost: v.fault != nil}
	end := v.begin(t.Context(), c)
	r := result{objects: map[string][][]object{}, errors: map[string]map[string]int{}}
	for _, f := range flows {
		objects, err := f.run(t.Context(), k, ends[f.name])
		if err != nil {
			t.Errorf("%s on %s: %v", f.name, server, err)
			if ended := c.Failure(); ended != nil {
				t.Fatal(ended) // the other flows would wait for it
			}
			continue
		}
		t.Logf("%s ran on %s, and left %d objects", f.name, server, len(slices.Concat(objects...)))
		r.objects[f.name] = objects
	}
	if err := errors.Join(end(), c.Failure()); err != nil {
		t.Error(err)
	}
	if v.fault == nil {
		if err := c.AskComponents(t.Context()); err != nil {
			t.Errorf("%s: %v", server, err)
		}
	}
	all := c.Running()
	c.Stop()
	if k.repeated > 0 {
		t.Logf("%d steps were run again, because kubectl's connection broke", k.repeated)
	}
	for _, p := range all {
		if kills, exits := p.Runs(); kills+len(exits) > 0 {
			t.Logf("%s was killed %d times, and has ended by itself %d times: %v", p.Name(), kills, len(exits), exits)
		}
		lines, err := errorLines(p.Log())
		if err != nil {
			t.Fatal(err)
		}
		r.errors[p.Name()] = lines
	}
	return r
}

// chosenFlows returns the flows that the flags choose.
func chosenFlows(t *testing.T) []flow {
	t.Helper()
	flows, err := readFlows(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	if *only != "" {
		flows = slices.DeleteFunc(flows, func(f flow) bool { return !slices.Contains(strings.Split(*only, ","), f.name) })
	}
	return flows
}

// clusterFolder returns an empty folder for the files and logs of a cluster.
func clusterFolder(t *testing.T, name string) string {
	t.Helper()
	if *keep == "" {
		return absolute(t, t.TempDir())
	}
	folder := filepath.Join(*keep, name)
	// What a run before has left would be found by this one's server.
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	return absolute(t, folder)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return full
}
