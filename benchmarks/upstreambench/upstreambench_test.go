package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
)

func TestNumbers(t *testing.T) {
	if got, err := numbers("pods", "1000, 5000"); err != nil || !slices.Equal(got, []int{1000, 5000}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, wrong := range []string{"", ",", "many", "0", "-1", "1.5"} {
		var usage *process.UsageError
		if got, err := numbers("pods", wrong); !errors.As(err, &usage) || usage.Flag != "pods" {
			t.Errorf("%q: %v, %v", wrong, got, err)
		}
	}
}

// TestWrongFlags: what cannot be measured is refused before anything is started.
func TestWrongFlags(t *testing.T) {
	for flag, wrong := range map[string]plan{
		"sides":    {sides: []string{"k3s"}, repeat: 1, probes: 1, limit: 1},
		"repeat":   {sides: allSides, probes: 1, limit: 1},
		"probes":   {sides: allSides, repeat: 1, limit: 1},
		"limit":    {sides: allSides, repeat: 1, probes: 1},
		"binaries": {sides: allSides, repeat: 1, probes: 1, limit: 1, binaries: t.TempDir()},
	} {
		var usage *process.UsageError
		if err := wrong.validate("1", "1", nil); !errors.As(err, &usage) || usage.Flag != flag {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// TestAProgramThatEndsIsNotWaitedFor: it is why, and not the limit.
func TestAProgramThatEndsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &follower{failed: make(chan error), tally: newTally(1)}
		ended := errors.New("etcd has ended")
		if err := f.await(t.Context(), nil, func() error { return ended }, time.Hour); !errors.Is(err, ended) {
			t.Error(err)
		}
		if err := f.await(t.Context(), nil, func() error { return nil }, time.Hour); err == nil || !strings.Contains(err.Error(), "0 pods of 1") {
			t.Errorf("%v, want an error that says how far the pods have come", err)
		}
	})
}

// TestTally follows two pods, of which there were three: one was deleted before it was bound.
func TestTally(t *testing.T) {
	pod := func(uid, node string, ends bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Spec: corev1.PodSpec{NodeName: node}}
		if ends {
			p.DeletionTimestamp = new(metav1.Now())
		}
		return p
	}
	tally := newTally(2)
	for i, step := range []struct {
		kind                watch.EventType
		pod                 *corev1.Pod
		remove, bound, gone bool
	}{
		{watch.Added, pod("a", "", false), false, false, false},
		{watch.Modified, pod("a", "node", false), false, false, false},
		{watch.Added, pod("c", "", false), false, false, false},
		{watch.Deleted, pod("c", "", true), false, false, false},
		{watch.Added, pod("b", "node", false), false, true, false},
		{watch.Modified, pod("b", "node", false), false, true, false},
		{watch.Modified, pod("b", "node", true), true, true, false},
		{watch.Modified, pod("b", "node", true), false, true, false},
		{watch.Deleted, pod("b", "node", true), false, false, false},
		{watch.Modified, pod("a", "node", true), true, false, false},
		{watch.Deleted, pod("a", "node", true), false, false, true},
	} {
		remove := tally.add(step.kind, step.pod)
		if remove != step.remove || tally.isBound() != step.bound || tally.isGone() != step.gone {
			t.Errorf("event %d: to be removed: %v; %s", i, remove, tally)
		}
	}
}

// TestAWatchThatEndsGoesOn: kube-apiserver ends the watch of a client that is slow for a moment, and no event is missed for that.
func TestAWatchThatEndsGoesOn(t *testing.T) {
	client := fake.NewClientset()
	began := 0
	client.PrependWatchReactor("pods", func(action clienttesting.Action) (bool, watch.Interface, error) {
		began++
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(began)), ResourceVersion: fmt.Sprint(10 * began)}, Spec: corev1.PodSpec{NodeName: "node"}}
		if version := action.(clienttesting.WatchActionImpl).ListOptions.ResourceVersion; began > 1 && version != fmt.Sprint(10*(began-1)) {
			t.Errorf("watch %d begins at %q", began, version)
		}
		watching := watch.NewFakeWithChanSize(1, false)
		watching.Add(pod)
		if began < 3 {
			watching.Stop()
		}
		return true, watching, nil
	})
	f, err := follow(t.Context(), client, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer f.stop()
	if err := f.await(t.Context(), f.allBound, func() error { return nil }, time.Minute); err != nil {
		t.Error(err)
	}
}

func TestPhaseIsWhatWasUsedBetweenTwoMoments(t *testing.T) {
	begin := time.Now()
	before := used{at: begin, server: 1, store: 1, components: 2, own: 3, machine: 10}
	after := used{at: begin.Add(time.Second), server: 5, store: 3, components: 4, own: 6, machine: 29}
	if got, want := before.until(after), (phase{took: time.Second, server: 4, store: 2, components: 2, others: 10}); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}

// TestTable: the ratio is of medians, and the store is told apart where it is a program of its own.
func TestTable(t *testing.T) {
	measured := func(seconds, cpu, etcd float64) outcome {
		o := outcome{all: map[string]float64{untilBound: seconds, cpuBound: cpu, cpuOthers: 7}, store: map[string]float64{}}
		if etcd > 0 {
			o.store[cpuBound] = etcd
		}
		return o
	}
	text := (&table{pods: 5000, nodes: 100, outcomes: map[string][]outcome{
		ours: {measured(2, 1, 0), measured(4, 3, 0)}, theirs: {measured(6, 8, 4), measured(6, 8, 2)},
	}}).text()
	for _, want := range []string{
		"| 5,000 pods, 100 nodes |",
		"| " + untilBound + " | 3.00 | 6.00 |  | 2.0× |",
		"| " + cpuBound + " | 2.00 | 8.00 | 3.00 | 4.0× |",
		"| " + cpuOthers + " | 7.00 | 7.00 |  |  |",
		"| " + peakMemory + " |  |  |  |  |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table has no %q:\n%s", want, text)
		}
	}
	alone := (&table{pods: 1, nodes: 1, outcomes: map[string][]outcome{ours: {measured(2, 1, 0)}}}).text()
	if want := "| " + untilBound + " | 2.00 |  |  |  |"; !strings.Contains(alone, want) {
		t.Errorf("the table of one side has no %q:\n%s", want, alone)
	}
}

// TestProbesAreSeenOrItFails: the lag of those that arrived says nothing if others did not.
func TestProbesAreSeenOrItFails(t *testing.T) {
	all, seen := load.Written{Sent: 20, Due: 20}, load.Report{Open: 1, Total: 20}
	if err := probeError(all, seen); err != nil {
		t.Error(err)
	}
	for want, wrong := range map[string]struct {
		written load.Written
		seen    load.Report
	}{
		"1 of 20 updates in probe failed": {load.Written{Sent: 19, Due: 20, Errors: []string{"409"}}, seen},
		"has brought 19 of 20":            {all, load.Report{Open: 1, Total: 19}},
		"has ended":                       {all, load.Report{Ended: 1, Total: 20}},
		"2 events were out of order":      {all, load.Report{Open: 1, Total: 20, Disordered: 2}},
		"has brought 0 of 0 updates":      {load.Written{}, load.Report{Open: 1}},
	} {
		if err := probeError(wrong.written, wrong.seen); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestTablesHaveTheirPlaces: one size is written, and the others stay.
func TestTablesHaveTheirPlaces(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	p := &plan{pods: []int{1000}, nodes: []int{10}, repeat: 1, probes: 1, limit: 1, sides: allSides, report: page}
	mark := func(size string) string {
		return (&table{pods: 1000, nodes: 10}).beginMark() + "\n" + size + endMark + "\n"
	}
	text := "before\n" + strings.ReplaceAll(mark("kept"), "10 nodes", "100 nodes")
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var usage *process.UsageError
	if err := p.checkReport(); !errors.As(err, &usage) || usage.Flag != "report" {
		t.Errorf("a page without a place: %v", err)
	}
	if err := os.WriteFile(page, []byte(text+mark("outdated")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.checkReport(); err != nil {
		t.Error(err)
	}
	if err := p.write(t.Context(), &table{pods: 1000, nodes: 10}); err != nil {
		t.Error(err)
	}
	written, err := os.ReadFile(page)
	if got := string(written); err != nil || !strings.Contains(got, "kept") || strings.Contains(got, "outdated") || !strings.Contains(got, "| 1,000 pods, 10 nodes |") {
		t.Errorf("%v\n%s", err, got)
	}
}
