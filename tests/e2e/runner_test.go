package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// standIn makes a runner whose suite is a shell script.
func standIn(t *testing.T, script string) *runner {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "e2e.test"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := newRunner(options{binaries: folder, work: filepath.Join(folder, "work"), timeout: time.Minute}, new(strings.Builder))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSuiteIsListed(t *testing.T) {
	all, err := standIn(t, `cat << END
- testname: Two
  codename: '[sig-b] two
    [Conformance]'
- testname: One
  codename: '[sig-a] one [Conformance]'
END
`).list(t.Context())
	if err != nil || len(all) != 2 || all[0] != "[sig-a] one [Conformance]" || all[1] != "[sig-b] two [Conformance]" {
		t.Errorf("%q %v", all, err)
	}
	for name, r := range map[string]*runner{"nothing": standIn(t, ""), "it fails": standIn(t, "exit 1"), "no list": standIn(t, "echo hello")} {
		if all, err := r.list(t.Context()); err == nil {
			t.Errorf("%s: %q", name, all)
		}
	}
}

// TestAPartRuns: the suite is asked for the tests of the part, its report is read though it exits with 1,
// and its output stays.
func TestAPartRuns(t *testing.T) {
	r := standIn(t, `for flag; do
  case $flag in
  --ginkgo.json-report=*) report=${flag#*=};;
  --ginkgo.focus=*) echo "$flag";;
  esac
done
cat > "$report" << END
[{"SpecReports": [
  {"ContainerHierarchyTexts": ["[sig-a] A"], "LeafNodeType": "It", "LeafNodeText": "passes", "State": "passed"},
  {"ContainerHierarchyTexts": ["[sig-a] A"], "LeafNodeType": "It", "LeafNodeText": "fails", "State": "failed", "Failure": {"Message": "at $KUBECONFIG"}}
]}]
END
exit 1
`)
	folder := t.TempDir()
	found, err := r.part(t.Context(), "config", folder, part{"a", "a", []testName{"[sig-a] A passes", "[sig-a] A fails"}})
	if err != nil || found["[sig-a] A passes"].state != passed || found["[sig-a] A fails"] != (outcome{failed, "at config"}) {
		t.Errorf("%+v %v", found, err)
	}
	log, err := os.ReadFile(filepath.Join(folder, "e2e-a.log"))
	if err != nil || strings.Count(string(log), "--ginkgo.focus=") != 2 {
		t.Errorf("%v\n%s", err, log)
	}
}

// TestAPartWithoutAReport: nobody knows of the tests of a suite that dies.
func TestAPartWithoutAReport(t *testing.T) {
	found, err := standIn(t, "exit 3").part(t.Context(), "config", t.TempDir(), part{"a", "a", []testName{"[sig-a] A"}})
	if missing := new(noReport); found != nil || !errors.As(err, &missing) || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "e2e-a.log") {
		t.Errorf("%+v %v, want an error that says how the suite ended, and where its log is", found, err)
	}
}
