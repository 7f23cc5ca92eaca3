package main

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// published are the modules of a place that GOPROXY names: a suite, and an envtest beside it.
var published = map[string]map[string]string{
	"example.com/suite@v1.0.0": {
		"go.mod": `module example.com/suite

go 1.26.0

require sigs.k8s.io/controller-runtime v0.0.0

replace sigs.k8s.io/controller-runtime => ../beside
`,
		"plain/plain_test.go": "package plain\n",
		"pods/pods_test.go": `package pods

import (
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func TestStart(t *testing.T) {
	said := envtest.Start()
	if said != os.Getenv("EXPECTED") {
		t.Skipf("the server says %q", said)
	}
	if err := os.WriteFile("next-to-the-sources", nil, 0o600); err != nil {
		t.Error(err)
	}
}

func TestFails(t *testing.T) { t.Error("on purpose") }

func TestHeld(t *testing.T) {
	t.Run("one", func(*testing.T) {})
	t.Run("two", func(*testing.T) {})
}
`,
		"nodes/nodes_test.go": `package nodes

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func TestDoesNotCompile(*testing.T) { envtest.Stop() }
`,
	},
	"example.com/envtest@v1.0.0": {
		"go.mod": "module sigs.k8s.io/controller-runtime\n\ngo 1.26.0\n",
		"pkg/envtest/envtest.go": `package envtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

var DefaultBinaryAssetsIndexURL = "https://example.com/"

// Start starts a server, and leaves it running.
func Start() string {
	if !strings.HasPrefix(DefaultBinaryAssetsIndexURL, "http://127.0.0.1:") {
		return "the index is " + DefaultBinaryAssetsIndexURL
	}
	server := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-apiserver"))
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		return err.Error()
	}
	said := make([]byte, 100)
	n, _ := out.Read(said)
	return strings.TrimSpace(string(said[:n]))
}
`,
	},
}

// serverScript says its name, and goes on until it is killed.
const serverScript = "#!/bin/sh\necho %s\necho $$ >> %s\nexec sleep 3600\n"

// place makes a GOPROXY, programs of both sides and options that use them.
func place(t *testing.T) (o options, pids string) {
	t.Helper()
	dir := t.TempDir()
	for at, files := range published {
		publish(t, filepath.Join(dir, "proxy"), at, files)
	}
	cache := filepath.Join(dir, "modules")
	t.Cleanup(func() { writable(cache) })
	for name, value := range map[string]string{
		"GOPROXY": "file://" + filepath.ToSlash(filepath.Join(dir, "proxy")), "GOSUMDB": "off", "GONOSUMDB": "", "GOPRIVATE": "", "GONOPROXY": "", "GOMODCACHE": cache,
	} {
		t.Setenv(name, value)
	}
	pids = filepath.Join(dir, "pids")
	t.Cleanup(func() {
		for _, pid := range running(pids) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // a run that left it has failed the test
		}
	})
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	standIn := write("stand-in", fmt.Sprintf(serverScript, "levelwire", pids))
	levelwire := write("levelwire", "#!/bin/sh\nmkdir -p $2\nfor name in etcd kube-apiserver kubectl; do cp "+standIn+" $2/$name; done\n")
	write("judge/etcd", "")
	write("judge/kube-apiserver", fmt.Sprintf(serverScript, "kube-apiserver", pids))
	return options{
		levelwire: levelwire, judge: filepath.Join(dir, "judge"), work: filepath.Join(dir, "work"),
		results: filepath.Join(dir, "results.json"), page: filepath.Join(dir, "page.md"),
	}, pids
}

// publish adds a module to a folder that is a GOPROXY.
func publish(t *testing.T, proxy, at string, files map[string]string) {
	t.Helper()
	path, version, _ := strings.Cut(at, "@")
	var archive bytes.Buffer
	packed := zip.NewWriter(&archive)
	for name, text := range files {
		w, err := packed.Create(at + "/" + name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for ending, content := range map[string][]byte{
		"info": []byte(`{"Version":"` + version + `"}`), "mod": []byte("module " + path + "\n"), "zip": archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(folder, version+"."+ending), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// writable lets a module cache be removed.
func writable(cache string) {
	_ = filepath.WalkDir(cache, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		return err
	})
}

const suiteTable = `
- name: suite
  module: example.com/suite
  version: v1.0.0
  packages: [./...]
  environment: {EXPECTED: levelwire}
  beside: [{folder: ../beside, module: example.com/envtest, version: v1.0.0}]
  leftOut:
  - {package: ./nodes, why: It does not compile.}
  - {package: ./pods, test: TestFails, why: It fails on purpose.}
`

func TestSuiteRunsOnBothSides(t *testing.T) {
	o, pids := place(t)
	var said strings.Builder
	failed, err := run(t.Context(), []byte(suiteTable), o, &said)
	if err != nil || failed {
		t.Fatalf("%v %v\n%s", failed, err, said.String())
	}
	record, err := readResults(o.results)
	if err != nil {
		t.Fatal(err)
	}
	found := record["suite"]
	if found == nil || found.Real == nil {
		t.Fatalf("%+v, want results of both sides\n%s", found, said.String())
	}
	if want := (counts{Passed: 3, LeftOut: 1}); found.Levelwire.counts != want || found.Packages != 1 {
		t.Errorf("%+v, want %+v of one package", found, want)
	}
	// The real one is told apart by its name, which TestStart does not expect.
	if want := (counts{Passed: 2, LeftOut: 1, Skipped: 1}); found.Real.counts != want {
		t.Errorf("on kube-apiserver %+v, want %+v", found.Real.counts, want)
	}
	if text, err := os.ReadFile(o.page); err != nil || !strings.Contains(string(text), "| suite | `example.com/suite` v1.0.0 |") {
		t.Errorf("the page: %v\n%s", err, text)
	}
	checkNothingIsLeft(t, o, pids)
}

// checkNothingIsLeft looks for what a run made, and for servers that tests did not stop.
func checkNothingIsLeft(t *testing.T, o options, pids string) {
	t.Helper()
	entries, err := os.ReadDir(o.work)
	if err != nil || len(entries) != 1 || entries[0].Name() != "log" {
		t.Errorf("%v %v are left, want the logs", entries, err)
	}
	if _, err := os.Stat(pids); err != nil {
		t.Errorf("no server has run: %v", err)
	}
	if left := running(pids); len(left) > 0 {
		t.Errorf("servers %v still run", left)
	}
}

// running returns those servers of a list that still run. Only Linux can say so.
func running(pids string) (left []int) {
	started, _ := os.ReadFile(pids) // there may be none
	for pid := range strings.FieldsSeq(string(started)) {
		line, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if number, notOne := strconv.Atoi(pid); err == nil && notOne == nil && strings.Contains(string(line), "sleep\x003600") {
			left = append(left, number)
		}
	}
	return left
}

func TestFailuresAreShown(t *testing.T) {
	o, pids := place(t)
	o.judge = ""
	var said strings.Builder
	failed, err := run(t.Context(), []byte(strings.Replace(suiteTable, "- {package: ./pods, test: TestFails, why: It fails on purpose.}", "", 1)), o, &said)
	if err != nil || !failed {
		t.Errorf("%v %v, want a run that fails", failed, err)
	}
	for _, want := range []string{"[1/1] suite: example.com/suite v1.0.0", "(1/1) ./pods: compiling", "4 specs: 3 passed, 1 failed", "FAILED TestFails", "on purpose", "pods.levelwire.log"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("nothing says %q:\n%s", want, said.String())
		}
	}
	log, err := os.ReadFile(filepath.Join(o.work, "log", "suite", "pods.levelwire.log"))
	if err != nil || !strings.Contains(string(log), "--- FAIL: TestFails") {
		t.Errorf("the log: %v\n%s", err, log)
	}
	checkNothingIsLeft(t, o, pids)
}

// TestAllRunsWhatIsLeftOut: -all tells what an exception still stands for, and changes no result.
func TestAllRunsWhatIsLeftOut(t *testing.T) {
	o, _ := place(t)
	o.all = true
	var said strings.Builder
	failed, err := run(t.Context(), []byte(suiteTable), o, &said)
	if err != nil || !failed || !strings.Contains(said.String(), "undefined: envtest.Stop") {
		t.Errorf("%v %v, want that nodes does not compile:\n%s", failed, err, said.String())
	}
	for _, file := range []string{o.results, o.page} {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is written", file)
		}
	}
}

// TestErrorsSayWhatToDo: what is wrong with one suite does not keep others from running.
func TestErrorsSayWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *options, table string) string
		want   string
	}{
		"a version that is not served": {func(_ *options, table string) string { return strings.Replace(table, "v1.0.0", "v1.0.1", 1) }, "or another GOPROXY"},
		"no such package":              {func(_ *options, table string) string { return strings.Replace(table, "./...", "./plain", 1) }, "suites.yaml leaves out something of ./nodes"},
		"tests without envtest": {func(_ *options, table string) string {
			table, _, _ = strings.Cut(table, "  leftOut:")
			return strings.Replace(table, "./...", "./plain", 1)
		}, "correct the packages in suites.yaml"},
	} {
		o, _ := place(t)
		var said strings.Builder
		failed, err := run(t.Context(), []byte(c.change(&o, suiteTable)), o, &said)
		if err != nil || !failed || !strings.Contains(said.String(), c.want) {
			t.Errorf("%s: %v %v, want %q:\n%s", name, failed, err, c.want, said.String())
		}
	}
	for name, c := range map[string]struct {
		change func(o *options)
		want   string
	}{
		"no program":       {func(o *options) { o.levelwire += "-gone" }, "make build"},
		"no real programs": {func(o *options) { o.judge += "-gone" }, "make judge builds them"},
		"no such suite":    {func(o *options) { o.names = "siute" }, "choose of suite"},
	} {
		o, _ := place(t)
		c.change(&o)
		if _, err := run(t.Context(), []byte(suiteTable), o, new(strings.Builder)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if entries, err := os.ReadDir(o.work); err == nil && (len(entries) != 1 || entries[0].Name() != "log") {
			t.Errorf("%s: %v are left", name, entries)
		}
	}
}

func TestInterrupt(t *testing.T) {
	o, _ := place(t)
	ctx, cancel := context.WithCancel(t.Context())
	interrupting := &interrupter{after: "compiling", cancel: cancel}
	if _, err := run(ctx, []byte(suiteTable), o, interrupting); err == nil || !strings.Contains(err.Error(), "interrupted in suite") {
		t.Errorf("%v, want an error that says so", err)
	}
	if entries, err := os.ReadDir(o.work); err != nil || len(entries) != 1 || entries[0].Name() != "log" {
		t.Errorf("%v %v are left, want the logs", entries, err)
	}
}

// interrupter cancels a run when it prints something.
type interrupter struct {
	after  string
	cancel func()
}

func (i *interrupter) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte(i.after)) {
		i.cancel()
	}
	return len(text), nil
}

// TestWhatToDo has what the go command says of its failures.
func TestWhatToDo(t *testing.T) {
	for said, want := range map[string]string{
		"reading https://example.com/a/@v/v1.0.0.info: 404 Not Found":                     "another GOPROXY",
		"Get \"https://example.com\": dial tcp: lookup example.com: no such host":         "connect this machine",
		"write /tmp/go-build1/b001/x: no space left on device":                            "go clean -cache",
		"example.com/a@v1.0.0 requires go >= 1.99 (running go 1.26.8; GOTOOLCHAIN=local)": "newer Go",
		"verifying example.com/a@v1.0.0: checksum mismatch":                               "do not go on",
		"x.go:1:1: expected 'package'":                                                    "-keep",
	} {
		if got := whatToDo(said); !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
