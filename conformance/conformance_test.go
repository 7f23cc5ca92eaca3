package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

var writeDocs = flag.String("write-docs", "", "file to write the table of verdicts to")

// storages start a server on each kind of storage.
var storages = []struct {
	name  string
	start func(t *testing.T) *levelwiretest.Server
	// aged says that the server has forgotten its first version, so that the
	// guarantees about that can be checked.
	aged bool
	// exact says that it has no coalesced history.
	exact bool
}{
	{"memory", func(t *testing.T) *levelwiretest.Server {
		return start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory})
	}, false, false},
	{"embedded etcd", func(t *testing.T) *levelwiretest.Server {
		return startAged(t, server.Config{DataDir: t.TempDir()})
	}, true, false},
	{"external etcd", func(t *testing.T) *levelwiretest.Server {
		return startAged(t, server.Config{DataDir: t.TempDir(), Storage: server.Etcd, EtcdServers: []string{startEtcd(t)}})
	}, true, false},
	{"embedded etcd, --coalesced-history=false", func(t *testing.T) *levelwiretest.Server {
		return startAged(t, server.Config{DataDir: t.TempDir(), ExactHistory: true})
	}, true, true},
}

// TestStorages: our server keeps every guarantee, whatever it stores in.
func TestStorages(t *testing.T) {
	t.Parallel()
	reports := make([]*Report, len(storages))
	t.Cleanup(func() { // after all storages
		if *writeDocs != "" && !t.Failed() {
			if err := os.WriteFile(*writeDocs, document(reports), 0o644); err != nil {
				t.Error(err)
			}
		}
	})
	for i, storage := range storages {
		t.Run(storage.name, func(t *testing.T) {
			t.Parallel()
			s := storage.start(t)
			report, err := Run(t.Context(), s.Config(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			reports[i] = report
			if failed, undecided := report.Count(Fail), report.Count(NotDecided); failed+undecided > 0 {
				var b bytes.Buffer
				if err := report.WriteTable(&b); err != nil {
					t.Error(err)
				}
				t.Errorf("%d guarantees are broken, %d are not decided\n%s", failed, undecided, &b)
			}
			for _, result := range report.Results {
				excused := strings.Contains(result.Reason, "--slow") || !storage.aged && result.Reason == reachesBack ||
					result.Reason == tellsCoalesced && !storage.exact || result.Reason == tellsNothing && storage.exact
				if result.Verdict == Skip && !excused {
					t.Errorf("%s was skipped: %s", result.Name, result.Reason)
				}
			}
			checkNothingLeft(t, s)
		})
	}
}

func checkNothingLeft(t *testing.T, s *levelwiretest.Server) {
	t.Helper()
	server, err := connect(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer server.close()
	e := newEnv(t.Context(), server, "default")
	for _, path := range []string{"/api/v1/namespaces", "/api/v1/configmaps", "/api/v1/pods"} {
		a, err := e.exchange(t.Context(), request{path: path})
		if err != nil || a.code != 200 {
			t.Errorf("%s: %v, %v", path, a, err)
		}
		if bytes.Contains(a.body, []byte("levelwire-verify")) {
			t.Errorf("something was left behind in %s", path)
		}
	}
}

// document makes a page of docs/ from the reports of all storages, in their order.
func document(reports []*Report) []byte {
	var b bytes.Buffer
	b.WriteString(docsHead)
	b.WriteString("| guarantee | what it says | source |")
	for _, storage := range storages {
		fmt.Fprintf(&b, " %s |", storage.name)
	}
	b.WriteString("\n|-|-|-|" + strings.Repeat("-|", len(storages)) + "\n")
	notes := map[string]bool{}
	for i, g := range Guarantees() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |", g.Name, strings.ReplaceAll(g.Sentence, "|", `\|`), g.Source)
		for n, storage := range storages {
			result := reports[n].Results[i]
			fmt.Fprintf(&b, " %s |", result.Verdict)
			if result.Verdict == Skip {
				notes[fmt.Sprintf("- `%s` on %s: %s\n", g.Name, storage.name, result.Reason)] = true
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\nSkipped, and why:\n\n")
	var sorted []string
	for note := range notes {
		sorted = append(sorted, note)
	}
	slices.Sort(sorted)
	b.WriteString(strings.Join(sorted, ""))
	return b.Bytes()
}

const docsHead = `# Guarantees of list and watch, and which servers keep them

` + "`levelwire verify --kubeconfig FILE`" + ` tries what is listed here on any Kubernetes-style API server: over raw HTTP/1.1 and
HTTP/2, with none of our own client code, in namespaces that it makes and removes. It prints a table (` + "`-o json` and `-o junit`" + `
are for programs), exits with 1 if a guarantee is not kept, and says what it could not check and why. ` + "`--run '^watch/'`" + `
chooses by name; ` + "`--slow`" + ` adds what takes minutes.

A slow server is not a broken one. How long a check waits follows from how long simple requests take the server: 50 times as long
as the slowest of them, from 10 s to a minute for an event, and three times that for an answer. What does not come in time
counts against the server if it could have answered ten simple requests meanwhile. Otherwise the verdict is ` + "`not decided`" + `, with what
took too long, as it is for a request that is answered with 429. If nothing failed and something is not decided, the exit code is 3.

The guarantees named ` + "`stream/...`" + ` are properties of one recorded history: several writers change objects at the same time,
while watchers start at different moments and in different ways, filter, read slowly, hang up and resume. A violation is shown
with the few lines of that history that prove it.

That each check can fail is tested, too: ` + "`conformance/broken_test.go`" + ` puts a proxy between the checks and a server that breaks
one promise at a time, and demands that it is caught by name.

429 while a cache is being filled cannot be provoked from outside and is not in the list.

This file is generated, on our own server with each kind of storage:

` + "```sh" + `
go test ./conformance -run TestStorages -write-docs ../docs/users/verify.md
` + "```" + `

`

// TestReports: every format shows the four verdicts.
func TestReports(t *testing.T) {
	t.Parallel()
	report := &Report{Server: "https://there", Duration: 2 * time.Second, Results: []Result{
		{Name: "list/good", Sentence: "All is well.", Verdict: Pass, Duration: time.Millisecond},
		{Name: "list/bad", Sentence: "Nothing is lost.", Source: "KEP-1", Verdict: Fail, Reason: "lost\n  a <thing>", Evidence: []string{"GET /x -> 200"}},
		{Name: "watch/unknown", Sentence: "Who knows.", Verdict: Skip, Reason: "no pods here"},
		{Name: "watch/late", Sentence: "It comes.", Source: "KEP-2", Verdict: NotDecided, Reason: "too slow", Evidence: []string{"GET /late"}},
	}}
	var table, asJSON, junit bytes.Buffer
	for _, err := range []error{report.WriteTable(&table), report.WriteJSON(&asJSON), report.WriteJUnit(&junit)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []string{"list/good", "pass", "All is well.", "promised: Nothing is lost. (KEP-1)", "a <thing>", "GET /x -> 200", "no pods here", "1 passed, 1 failed, 1 not decided, 1 skipped",
		"promised: It comes. (KEP-2)", "too slow", "GET /late"} {
		if !strings.Contains(table.String(), part) {
			t.Errorf("the table does not say %q:\n%s", part, &table)
		}
	}
	var back Report
	if err := json.Unmarshal(asJSON.Bytes(), &back); err != nil || len(back.Results) != 4 || back.Results[3].Verdict != NotDecided || back.Results[1].Evidence[0] != "GET /x -> 200" {
		t.Errorf("JSON: %v\n%s", err, &asJSON)
	}
	var suite junitSuite
	if err := xml.Unmarshal(junit.Bytes(), &suite); err != nil {
		t.Fatal(err)
	}
	if late := suite.Cases[3]; suite.Errors != 1 || late.Error == nil || late.Error.Message != "too slow" || late.Failure != nil || late.Skipped != nil {
		t.Errorf("JUnit shows what was not decided as something else than an error: %s", &junit)
	}
	if suite.Tests != 4 || suite.Failures != 1 || suite.Skipped != 1 || suite.Cases[1].Failure == nil || suite.Cases[1].Class != "list" || suite.Cases[1].Name != "bad" {
		t.Errorf("JUnit: %s", &junit)
	}
}

func TestGuaranteesAreComplete(t *testing.T) {
	t.Parallel()
	if err := validate(Guarantees()); err != nil {
		t.Error(err)
	}
}

func TestChoice(t *testing.T) {
	t.Parallel()
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory})
	report, err := Run(t.Context(), s.Config(), Options{Run: regexp.MustCompile("^list/(order|exact)$"), Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) != 2 || report.Count(Pass) != 2 {
		t.Errorf("got %+v", report.Results)
	}
	if _, err := Run(t.Context(), s.Config(), Options{Run: regexp.MustCompile("no-such-check")}); err == nil {
		t.Error("a choice of nothing is an error")
	}
}

// TestInterrupted: a run that is cancelled reports what it has not done, and
// leaves nothing behind, neither objects nor goroutines.
func TestInterrupted(t *testing.T) {
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory})
	checkNothingLeft(t, s) // the server serves: its own goroutines are there
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	report, err := Run(ctx, s.Config(), Options{Parallel: 2, Done: func(Result) { cancel() }})
	if err != nil {
		t.Fatal(err)
	}
	if report.Count(Fail)+report.Count(NotDecided) > 0 || report.Count(Skip) < 50 {
		t.Errorf("%d failed, %d are not decided, %d were skipped", report.Count(Fail), report.Count(NotDecided), report.Count(Skip))
	}
	checkNothingLeft(t, s)
	goleak.VerifyNone(t, before)
}
