package differential

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

var (
	binaries  = flag.String("differential.binaries", "", "folder with the kube-apiserver and etcd that make judge builds; empty: they are not run")
	keep      = flag.String("differential.recording", "", "file in which the judge's answers are kept; empty: it is asked each time")
	recordAt  = flag.String("differential.record", "", "file for the judge's answers to what is asked, from which TestRecorded reads them; empty: none is written")
	changesAt = flag.String("differential.changes", "", "with -differential.record, file for a list of what the judge answers otherwise than the recording before; empty: none is written")
	reportAt  = flag.String("differential.report", "", "file for the report; empty: it is printed")
	listAt    = flag.String("differential.list", "", "file for a list of every difference, a line each; empty: none is written")
	most      = flag.Int("differential.groups", 40, "how many groups of differences the report has")
	seed      = flag.Uint64("differential.seed", 1, "decides on the order of requests, and on pairs of fields")
	requests  = flag.Int("differential.requests", 0, "how many requests; 0: all that set one field")
	kinds     = flag.String("differential.kinds", "", "kinds, separated by commas, as \"Pod\" or \"apps/v1 Deployment\"; empty: all")
	verbs     = flag.String("differential.verbs", strings.Join(allVerbs, ","), "verbs, separated by commas")
	match     = flag.String("differential.match", "", "an expression that the names of requests match; empty: all")
	pairsOf   = flag.String("differential.pairs", "", "topics, separated by commas, or all: every request sets two fields of them (pairs.go); empty: one field comes first")
	validate  = flag.Bool("differential.validation", false, "ask about unknown fields, and those that stand twice, with each fieldValidation")
	openGates = flag.Bool("differential.gates", false, "open the judge's feature gates of which declared.yaml says that there are none here; the judge's answers are others then: keep them in another file")
	only      = flag.String("differential.only", "", "the name of the one request that is asked")
)

// TestDifferential compares a server with the judge: make test-differential.
func TestDifferential(t *testing.T) {
	if *binaries == "" {
		t.Skip("make test-differential runs it: it needs kube-apiserver")
	}
	declared, err := parseDeclarations(declaredYAML)
	if err != nil {
		t.Fatal(err)
	}
	var gates []string
	if *openGates {
		gates, declared = declared.gates(), slices.DeleteFunc(declared, ofGate)
	}
	r := newRecording()
	if *keep != "" {
		if r, err = openRecording(*keep); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if !r.changed {
				return // it is some hundred megabytes, unzipped
			}
			if err := r.save(*keep); err != nil {
				t.Error(err)
			}
		}()
	}
	c := &comparisonRun{
		ours: startOurs(t), recording: r, declared: declared, log: t.Output(), workers: 4,
		judge: sync.OnceValues(func() (*side, error) {
			t.Log("starting kube-apiserver")
			logs := t.TempDir()
			if *keep != "" { // where they stay
				logs = filepath.Dir(*keep)
				if err := os.MkdirAll(logs, 0o755); err != nil {
					return nil, err
				}
			}
			s, stop, err := startJudge(t.Context(), *binaries, t.TempDir(), logs, gates)
			if err != nil {
				return nil, err
			}
			t.Cleanup(stop)
			return s, s.prepare(t.Context())
		}),
	}
	s := selection{seed: *seed, n: *requests, verbs: strings.Split(*verbs, ","), only: *only, fieldValidation: *validate}
	if *kinds != "" {
		s.kinds = strings.Split(*kinds, ",")
	}
	if *match != "" {
		if s.match, err = regexp.Compile(*match); err != nil {
			t.Fatal(err)
		}
	}
	if *pairsOf != "" {
		if s.pairs, err = parseTopics(*pairsOf); err != nil {
			t.Fatal(err)
		}
	}
	if i := slices.IndexFunc(s.verbs, func(verb string) bool { return !slices.Contains(allVerbs, verb) }); i >= 0 {
		t.Fatalf("VERBS: %q is none of %s", s.verbs[i], strings.Join(allVerbs, ","))
	}
	result, err := c.run(t.Context(), s)
	if result != nil {
		show(t, result)
	}
	if err != nil {
		t.Fatal(err)
	}
	if *recordAt != "" {
		record(t, c, s, result)
	}
	if result.total() == 0 {
		t.Error("nothing was asked: no request is of these VERBS, KINDS, PAIRS and MATCH")
	}
	if n := result.undeclared(); n > 0 {
		t.Errorf("%d of %d requests are answered differently", n, result.total())
	}
	if len(s.kinds) > 0 || *verbs != strings.Join(allVerbs, ",") || s.only != "" || s.match != nil || s.n > 0 || s.fieldValidation || len(s.pairs) > 0 || *openGates {
		return // a part may not need every declaration
	}
	for _, d := range result.unused(declared) {
		t.Errorf("no difference needs the declaration of %s at %q any more: remove it", d.Class, d.At)
	}
}

// record writes what TestRecorded reads. Requests that are answered differently are left
// out: they are known, and the test finds what has become different since.
func record(t *testing.T, c *comparisonRun, s selection, result *report) {
	requests, err := c.requests(s)
	if err != nil {
		t.Fatal(err)
	}
	requests = slices.DeleteFunc(requests, func(r *request) bool { return result.differed[r.String()] })
	part, err := c.recording.of(requests)
	if err != nil {
		t.Fatal(err)
	}
	before, err := openRecording(*recordAt)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := c.changes(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	if err := part.save(*recordAt); err != nil {
		t.Fatal(err)
	}
	added, gone := c.recording.kindsChanged(before)
	fmt.Fprintf(t.Output(), "\nkinds that kube-apiserver has now: %q, that it had: %q; %d answers of before are about other objects\n",
		added, gone, len(before.Answers)-len(c.recording.alsoIn(before)))
	fmt.Fprintln(t.Output(), "\nkube-apiserver now (ours), and in the recording before (judge):")
	changed.write(t.Output(), *most)
	if *changesAt != "" {
		writeFile(t, *changesAt, changed.list)
	}
}

func show(t *testing.T, result *report) {
	if *listAt != "" {
		writeFile(t, *listAt, result.list)
	}
	if *reportAt == "" {
		result.write(t.Output(), *most)
		return
	}
	writeFile(t, *reportAt, func(w io.Writer) { result.write(w, *most) })
}

func writeFile(t *testing.T, at string, write func(io.Writer)) {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(at)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	write(file)
}

// startOurs starts a server that is configured as the judge is.
func startOurs(t *testing.T) *side {
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokens, []byte(adminTokens), 0o600); err != nil {
		t.Fatal(err)
	}
	s := levelwiretest.Start(t, func(c *server.Config) {
		c.TokenAuthFile, c.AuthorizationModes = tokens, []string{"AlwaysAllow"}
		c.ServiceCIDR = netip.MustParsePrefix(serviceCIDR)
		c.CompactionInterval = -1 // old versions are asked about, however long the comparison takes
	})
	config := s.Config()
	ours := &side{
		name: "levelwire", url: config.Host, token: adminToken, checksPolicies: true,
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}},
	}
	if err := ours.prepare(context.Background()); err != nil {
		t.Fatal(err)
	}
	return ours
}
