package upstream

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	binaries = flag.String("upstream.binaries", "", "folder of levelwire, kubectl, etcd and Kubernetes' components; without it TestUpstream is skipped")
	only     = flag.String("upstream.flows", "", "names of the flows to run, separated by commas; empty: all")
	keep     = flag.String("upstream.keep", "", "folder for the files and logs of the servers and components; empty: one that is removed")
)

// result is what came of all flows on a server.
type result struct {
	objects map[string][]object
	errors  map[string]map[string]int // by component and line
}

// TestUpstream: with Kubernetes' own components, flows end on Levelwire as on kube-apiserver, and the
// components log no errors that they do not log there.
func TestUpstream(t *testing.T) {
	if *binaries == "" {
		t.Skip("make test-upstream builds the components and runs this")
	}
	flows, err := readFlows(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	if *only != "" {
		flows = slices.DeleteFunc(flows, func(f flow) bool { return !slices.Contains(strings.Split(*only, ","), f.name) })
	}
	ours := runAll(t, "levelwire", startLevelwire, flows)
	theirs := runAll(t, "kube-apiserver", startKubeAPIServer, flows)
	for _, f := range flows {
		t.Run(f.name, func(t *testing.T) {
			mine, ran := ours.objects[f.name]
			others, ranToo := theirs.objects[f.name]
			if !ran || !ranToo {
				t.Fatalf("it ran on Levelwire: %v, on kube-apiserver: %v", ran, ranToo)
			}
			for _, d := range differences(mine, others) {
				t.Error(d)
			}
		})
	}
	for component, lines := range ours.errors {
		t.Run("errors of "+component, func(t *testing.T) {
			for line, count := range lines {
				t.Logf("%d times on Levelwire, %d on kube-apiserver: %s", count, theirs.errors[component][line], line)
				if theirs.errors[component][line] == 0 && !isDeclared(component, line) {
					t.Error("only on Levelwire: " + line)
				}
			}
		})
	}
}

// runAll starts a server and the components, runs all flows one after another, and stops what it started.
func runAll(t *testing.T, server string, start func(context.Context, *cluster) error, flows []flow) result {
	t.Helper()
	folder := t.TempDir()
	if *keep != "" {
		folder = filepath.Join(*keep, server)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{server: server, folder: folder, binaries: absolute(t, *binaries), kubectl: filepath.Join(absolute(t, *binaries), "kubectl")}
	t.Cleanup(c.stop)
	if err := start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := c.startComponents(); err != nil {
		t.Fatal(err)
	}
	if err := c.awaitNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := result{objects: map[string][]object{}, errors: map[string]map[string]int{}}
	for _, f := range flows {
		objects, err := f.run(t.Context(), c, absolute(t, "testdata"))
		if err != nil {
			t.Errorf("%s on %s: %v", f.name, server, err)
			continue
		}
		t.Logf("%s ran on %s, and left %d objects", f.name, server, len(objects))
		r.objects[f.name] = objects
	}
	if err := c.failure(); err != nil {
		t.Error(err)
	}
	components := slices.Clone(c.running)
	c.stop()
	for _, p := range components {
		lines, err := errorLines(p.log)
		if err != nil {
			t.Fatal(err)
		}
		r.errors[p.name] = lines
	}
	return r
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	full, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return full
}
