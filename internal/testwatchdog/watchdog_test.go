package testwatchdog

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hangs, in the environment, has TestHangs hang.
const hangs = "LEVELWIRE_TESTWATCHDOG_HANGS"

// TestHangs is for TestATestThatHangsEndsItsBinary.
func TestHangs(t *testing.T) {
	if os.Getenv(hangs) == "" {
		t.Skip("only as a child")
	}
	watch(time.Microsecond, func() (time.Duration, bool) { return 0, true })
	t.Run("parent", func(t *testing.T) {
		t.Run("waits", func(t *testing.T) {
			t.Parallel()
			hang(t)
		})
		t.Run("also", func(t *testing.T) { t.Parallel() })
	})
}

func hang(t *testing.T) {
	t.Helper()
	<-make(chan struct{}) // here
}

// TestATestThatHangsEndsItsBinary says which test waits where, and not which others wait for it.
func TestATestThatHangsEndsItsBinary(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHangs$")
	cmd.Env = append(os.Environ(), hangs+"=1")
	said, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the test did not end: %s", said)
	}
	want := regexp.MustCompile(`(?m)^panic: a test has waited for more than 0s:\n\ttestwatchdog\.TestHangs\.func2\.1: chan receive.* at .*watchdog_test\.go:(\d+), for 0s$`)
	found := want.FindSubmatch(said)
	if found == nil {
		t.Fatalf("%s\nwant %v", said, want)
	}
	if !strings.Contains(string(said), "goroutine 1 [") || !strings.Contains(string(said), "testing.(*T).Run") {
		t.Errorf("not all goroutines are shown: %s", said)
	}
	source, err := os.ReadFile("watchdog_test.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(source), "\n")
	if at := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, "// here") }) + 1; string(found[1]) != strconv.Itoa(at) {
		t.Errorf("line %s, want %d", found[1], at)
	}
}

// TestHanging reads stacks as the runtime prints them.
func TestHanging(t *testing.T) {
	const (
		runner = "testing.tRunner(0x1, 0x2)\n\t/go/src/testing/testing.go:1 +0x1\ncreated by testing.(*T).Run in goroutine 1\n\t/go/src/testing/testing.go:2 +0x2"
		test   = "github.com/levelwire/levelwire/server.TestA(0x1)\n\t/x/a_test.go:7 +0x1\n"
		helper = "github.com/levelwire/levelwire/server.(*fixture).await(0x1, {0x2, 0x3})\n\t/x/fixture_test.go:9 +0x1\n"
	)
	for name, c := range map[string]struct {
		stack string
		want  []string
	}{
		"a channel":               {"goroutine 7 [chan receive, 5 minutes]:\n" + test + runner, []string{"server.TestA: chan receive at /x/a_test.go:7, for 5m0s"}},
		"not long enough":         {"goroutine 7 [chan receive, 4 minutes]:\n" + test + runner, nil},
		"less than a minute":      {"goroutine 7 [chan receive]:\n" + test + runner, nil},
		"it computes":             {"goroutine 7 [running, 9 minutes]:\n" + test + runner, nil},
		"in a helper":             {"goroutine 7 [select, 61 minutes]:\n" + helper + test + runner, []string{"server.TestA: select at /x/fixture_test.go:9, for 1h1m0s"}},
		"a WaitGroup":             {"goroutine 7 [sync.WaitGroup.Wait, 6 minutes]:\nsync.runtime_SemacquireWaitGroup(0x1)\n\t/go/sema.go:1 +0x1\nsync.(*WaitGroup).Wait(0x1)\n\t/go/wg.go:1 +0x1\n" + test + runner, []string{"server.TestA: sync.WaitGroup.Wait at /x/a_test.go:7, for 6m0s"}},
		"in a bubble":             {"goroutine 7 [synctest.Wait (durable), 6 minutes, synctest bubble 1]:\ninternal/synctest.Wait()\n\t/go/x.go:1 +0x1\ntesting/synctest.Wait(...)\n\t/go/x.go:2 +0x1\n" + test + runner, []string{"server.TestA: synctest.Wait (durable) at /x/a_test.go:7, for 6m0s"}},
		"locked to a thread":      {"goroutine 7 gp=0x1 m=2 mp=0x3 [chan send (durable), 5 minutes, locked to thread]:\n" + test + runner, []string{"server.TestA: chan send (durable) at /x/a_test.go:7, for 5m0s"}},
		"a network":               {"goroutine 7 [IO wait, 5 minutes]:\ninternal/poll.runtime_pollWait(0x1)\n\t/go/x.go:1 +0x1\nnet.(*conn).Read(0x1)\n\t/go/x.go:1 +0x1\n" + test + runner, []string{"server.TestA: IO wait at /x/a_test.go:7, for 5m0s"}},
		"a clean-up":              {"goroutine 7 [chan receive, 5 minutes]:\n" + helper + "testing.(*common).runCleanup(0x1)\n\t/go/x.go:1 +0x1\ntesting.tRunner.func2()\n\t/go/x.go:1 +0x1\n" + runner, []string{"server.(*fixture).await: chan receive at /x/fixture_test.go:9, for 5m0s"}},
		"for a subtest":           {"goroutine 7 [chan receive, 5 minutes]:\ntesting.(*T).Run(0x1)\n\t/go/x.go:1 +0x1\n" + test + runner, nil},
		"for its turn":            {"goroutine 7 [chan receive, 5 minutes]:\ntesting.(*T).Parallel(0x1)\n\t/go/x.go:1 +0x1\n" + test + runner, nil},
		"for parallel subtests":   {"goroutine 7 [chan receive, 5 minutes]:\ntesting.tRunner.func1()\n\t/go/x.go:1 +0x1\n" + runner, nil},
		"for a process":           {"goroutine 7 [syscall, 9 minutes]:\nos.(*Process).wait(0x1)\n\t/go/x.go:1 +0x1\nos/exec.(*Cmd).Wait(0x1)\n\t/go/x.go:1 +0x1\n" + test + runner, nil},
		"for what is made once":   {"goroutine 7 [sync.Mutex.Lock, 9 minutes]:\nsync.(*Mutex).Lock(...)\n\t/go/x.go:1 +0x1\nsync.(*Once).doSlow(0x1)\n\t/go/x.go:1 +0x1\n" + test + runner, nil},
		"in what is made once":    {"goroutine 7 [chan receive, 9 minutes]:\n" + helper + "sync.(*Once).doSlow(0x1)\n\t/go/x.go:1 +0x1\n" + test + runner, []string{"server.TestA: chan receive at /x/fixture_test.go:9, for 9m0s"}},
		"no test":                 {"goroutine 7 [chan receive, 5 minutes]:\n" + helper + "created by x in goroutine 1\n\t/go/x.go:1 +0x1", nil},
		"several, between others": {"goroutine 1 [running]:\nmain.main()\n\t/x.go:1 +0x1\n\ngoroutine 7 [select, 5 minutes]:\n" + test + runner + "\n\ngoroutine 8 [select, 6 minutes]:\n" + test + runner + "\n", []string{"server.TestA: select at /x/a_test.go:7, for 5m0s", "server.TestA: select at /x/a_test.go:7, for 6m0s"}},
	} {
		if got := hanging(c.stack, 5*time.Minute); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestLimit(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{10 * time.Minute: 5 * time.Minute, 30 * time.Minute: 5 * time.Minute, 24 * time.Hour: 4 * time.Hour} {
		if got, ok := limitOf(timeout); !ok || got != want {
			t.Errorf("with -timeout %v: %v, %v", timeout, got, ok)
		}
	}
	if _, ok := limitOf(0); ok {
		t.Error("tests without a time limit are watched")
	}
}

func TestArguments(t *testing.T) {
	for line, want := range map[string]string{
		"x.test":                                   "",
		"x.test -test.timeout=30m0s -test.v":       "30m0s",
		"x.test --test.timeout=1s":                 "1s",
		"x.test -test.v -test.timeout 10m":         "10m",
		"x.test -test.timeout=1s -test.timeout=":   "",
		"x.test -test.timeout":                     "",
		"x.test -soak.test.timeout=1s":             "",
		"x.test -test.timeout=1s -test.timeout 2s": "2s",
	} {
		if got, _ := argument(strings.Fields(line), "test.timeout"); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// looked is closed when limit has been called for a while, beginning before main defines the flags.
var looked = make(chan struct{})

func init() {
	go func() {
		defer close(looked)
		for range 1000 {
			limit()
			runtime.Gosched()
		}
	}()
}

// TestLimitIsReadBesideMain says the same as the flags; that it may, the race detector says.
func TestLimitIsReadBesideMain(t *testing.T) {
	<-looked
	timeout := flag.Lookup("test.timeout").Value.(flag.Getter).Get().(time.Duration)
	want, watched := limitOf(timeout)
	watched = watched && flag.Lookup("test.bench").Value.String() == ""
	if got, ok := limit(); ok != watched || ok && got != want {
		t.Errorf("with a time limit of %v: %v, %v", timeout, got, ok)
	}
}
