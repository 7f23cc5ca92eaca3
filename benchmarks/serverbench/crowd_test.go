package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"github.com/levelwire/levelwire/levelwiretest"
)

// TestCrowdSeesWhatIsWritten does what the children of a fan-out do, in one
// process.
func TestCrowdSeesWhatIsWritten(t *testing.T) {
	config := levelwiretest.Start(t).Config()
	on := &tested.Server{Side: tested.Ours, Access: tested.Access{URL: config.Host, CA: config.CAData, Cert: config.CertData, Key: config.KeyData}}
	objects, o, err := prepare(t.Context(), on.Access)
	if err != nil {
		t.Fatal(err)
	}
	if again, _, err := prepare(t.Context(), on.Access); err != nil || !bytes.Equal(again[7].Body, objects[7].Body) {
		t.Fatalf("a second writer prepares something else: %v", err)
	}
	version, err := on.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const writes = 2 * writtenPods
	crowds := map[string]*load.Crowd{}
	for name, c := range map[string]load.CrowdOptions{
		"all":      {Watchers: 30, PerConn: 10, Path: allPods},
		"protobuf": {Watchers: 3, PerConn: 1, Path: allPods, Protobuf: true},
		"stalled":  {Watchers: 3, Stalled: 1, Path: allPods},
	} {
		c.Path += "&watch=true&resourceVersion=" + version
		crowds[name] = gatherFrom(t, o, c)
	}
	for _, s := range selections {
		path := s.path + "&watch=true&resourceVersion=" + version
		crowds[s.name] = gatherFrom(t, o, load.CrowdOptions{Watchers: writtenPods / podsPerSlot * slotStep / 10, Path: path})
	}
	o.Objects = objects
	w, err := load.NewWriter(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	done, err := w.Run(t.Context(), 2000, writes*time.Second/2000)
	if err != nil || done.Sent != writes {
		t.Fatalf("%d of %d updates, %v, %q", done.Sent, writes, err, done.Errors)
	}
	// 500 watchers with a slot of their own cover a tenth of the slots; as names
	// they cover all pods.
	total := map[string]int64{"all": 30 * writes, "protobuf": 3 * writes, "stalled": 2 * writes, "metadata.name": writes}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, c := range crowds {
		want, ok := total[name]
		if !ok {
			want = writes / 10
		}
		if !c.Await(ctx, want) {
			t.Errorf("%s: something has not arrived", name)
		}
		r := c.Report(false)
		if r.Total != want || r.Disordered != 0 || r.Ended != 0 {
			t.Errorf("%s: %d events of %d, %d not in order, %d watchers cut off: %q", name, r.Total, want, r.Disordered, r.Ended, r.Errors)
		}
		if size := r.Bytes / r.Events; name == "all" && (size < writtenBytes || size > writtenBytes+120) {
			t.Errorf("an event has %d bytes", size)
		}
	}
}

func gatherFrom(t *testing.T, w load.WriterOptions, o load.CrowdOptions) *load.Crowd {
	t.Helper()
	o.Address, o.TLS = w.Address, w.TLS
	c, err := load.Gather(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestPicturesShowWhatWasMeasured(t *testing.T) {
	for _, g := range []*group{fanoutGroup(), dispatchGroup()} {
		for i, r := range g.rows {
			r.add(tested.Ours, result{Values: map[string]float64{cpuPerEvent: 3.25, cpuPerWrite: 325}})
			if i > 0 { // The first was not measured there.
				r.add(tested.Upstream, result{Values: map[string]float64{cpuPerEvent: 44.5, cpuPerWrite: 4450}})
			}
		}
		for _, p := range g.plots {
			svg, err := p.draw(g)
			if err != nil {
				t.Fatal(err)
			}
			if s := string(svg); !strings.Contains(s, "Levelwire") || !strings.Contains(s, "upstream") || !strings.Contains(s, p.title) {
				t.Errorf("%s: sides or title are missing in %s", p.file, s)
			}
		}
	}
}
