package differential

import (
	"errors"
	"strconv"
	"testing"
)

// recorded has the judge's answers to a fixed set of requests; make record-differential
// writes it.
const recorded = "testdata/recording.json.gz"

// TestRecorded asks a server what the judge was asked once, and compares: what has been
// as kube-apiserver has it stays so.
func TestRecorded(t *testing.T) {
	r, err := openRecording(recorded)
	if err != nil {
		t.Fatal(err)
	}
	declared, err := parseDeclarations(declaredYAML)
	if err != nil {
		t.Fatal(err)
	}
	c := &comparisonRun{
		recording: r, declared: declared, log: t.Output(), workers: 4,
		judge: func() (*side, error) {
			return nil, errors.New("the recording lacks what the judge would have to say: make record-differential")
		},
	}
	n := len(r.Answers)
	if err := c.load(t.Context(), nil, allVerbs); err != nil {
		t.Fatal(err)
	}
	if len(r.Answers) < n || n == 0 {
		t.Fatalf("of %d answers %d are about objects as they are now: make record-differential", n, len(r.Answers))
	}
	requests, err := r.requests()
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		requests = everyTenth(requests)
	}
	for i, part := range parts(requests) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			c := *c
			c.ours, c.log = startOurs(t), t.Output()
			result, err := c.ask(t.Context(), part)
			if err != nil {
				t.Fatal(err)
			}
			if got := result.undeclared(); got > 0 || result.total() != len(part) {
				result.write(t.Output(), *most)
				t.Errorf("%d of %d requests are answered differently, %d were not asked", got, len(part), len(part)-result.total())
			}
		})
	}
}

// parts divides requests among servers: sequences, which have a server for themselves as long as they
// run and wait for it most of the time, among several.
func parts(requests []*request) [][]*request {
	const servers = 6 // of sequences
	list := make([][]*request, servers+1)
	sequences := 0
	for _, r := range requests {
		i := 0
		if isSequence(r.verb) {
			i = 1 + sequences%servers
			sequences++
		}
		list[i] = append(list[i], r)
	}
	return list
}

// everyTenth leaves requests out, but none of the bases.
func everyTenth(requests []*request) []*request {
	var list []*request
	for i, r := range requests {
		if i%10 == 0 || len(r.edits) == 0 && !isSequence(r.verb) {
			list = append(list, r)
		}
	}
	return list
}
