package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFailedTests(t *testing.T) {
	exit := errors.New("exit status 2")
	for name, c := range map[string]struct {
		output string
		want   []string
	}{
		"tests":      {"--- FAIL: TestB (0.1s)\n    --- FAIL: TestB/x (0.0s)\n--- FAIL: TestA (0.1s)\nFAIL\n", []string{"TestA", "TestB"}},
		"a panic":    {"=== RUN TestA\npanic: boom\n\ngoroutine 1", []string{"panic: boom"}},
		"a death":    {"fatal error: concurrent map writes\n", []string{"fatal error: concurrent map writes"}},
		"no reason":  {"PASS\nleaks found\n", []string{"exit status 2"}},
		"both of it": {"--- FAIL: TestA (0.1s)\npanic: boom\n", []string{"TestA"}},
	} {
		if got := failedTests([]byte(c.output), exit); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// flaky is a package with a test that fails every second time.
const flaky = `package flaky

import (
	"os"
	"testing"
)

func TestEverySecondTime(t *testing.T) {
	if err := os.Mkdir("flag", 0o755); err != nil {
		os.Remove("flag")
		return
	}
	t.Error("this time it fails")
}

func TestFine(t *testing.T) {}
`

// built is the test binary of a module with one file. It changes the current folder.
func built(t *testing.T, source string) binary {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/flaky\ngo 1.26\n", "flaky_test.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-buildvcs=false")
	binaries, err := build(t.Context(), filepath.Join(dir, "binaries"), false, []string{"./..."})
	if err != nil || len(binaries) != 1 || binaries[0].pkg != "example.com/flaky" {
		t.Fatalf("%v, %v", binaries, err)
	}
	return binaries[0]
}

func TestHunt(t *testing.T) {
	b := built(t, flaky)
	h := hunt{duration: time.Hour, atOnce: 1, folder: t.TempDir()}
	for range 4 {
		h.runOne(t.Context(), b)
	}
	first := filepath.Join(h.folder, "failure-1.log")
	if output, err := os.ReadFile(first); err != nil || !strings.Contains(string(output), "this time it fails") {
		t.Errorf("%v: %s", err, output)
	}
	want := "2 of 4 runs: example.com/flaky TestEverySecondTime (" + first + ")\n" +
		"2 of 4 runs of 1 packages failed in 1s, seed 7\n"
	if got := h.tally.summary(time.Second, 7); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if err := h.clear(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next hunt has the failure of this one: %v", err)
	}
}

// TestExitIsAFailure: a test that ends the process with 0 has kept the others from running.
func TestExitIsAFailure(t *testing.T) {
	b := built(t, "package flaky\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestExits(*testing.T) { os.Exit(0) }\n")
	if output, err := b.run(t.Context()); err == nil {
		t.Errorf("it passed: %s", output)
	}
}

// TestNeverRun: a hunt that has not run everything says so.
func TestNeverRun(t *testing.T) {
	binaries := []binary{{pkg: "a"}, {pkg: "b"}}
	var counted tally
	counted.passed("a")
	if err := counted.unfinished(t.Context(), binaries); err == nil || !strings.Contains(err.Error(), ": b") {
		t.Errorf("of a: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := counted.unfinished(ended, binaries); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("of an interrupted one: %v", err)
	}
	counted.passed("b")
	if err := counted.unfinished(ended, binaries); err != nil {
		t.Errorf("of both: %v", err)
	}
}
