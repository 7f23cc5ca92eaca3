package main

import (
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

func TestHunt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/flaky\ngo 1.26\n", "flaky_test.go": flaky} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-buildvcs=false")
	h := hunt{duration: time.Hour, atOnce: 1, folder: "kept"}
	binaries, err := build(t.Context(), filepath.Join(dir, "binaries"), false, []string{"./..."})
	if err != nil || len(binaries) != 1 || binaries[0].pkg != "example.com/flaky" {
		t.Fatalf("%v, %v", binaries, err)
	}
	if h.folder, err = filepath.Abs(h.folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(h.folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		h.runOne(t.Context(), binaries[0])
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
}
