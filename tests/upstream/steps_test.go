package upstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConnectionsThatBreak: these are not answers of a server, and those are.
func TestConnectionsThatBreak(t *testing.T) {
	for message, want := range map[string]bool{
		"The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?": true,
		"Unable to connect to the server: EOF": true,
		`Get "https://127.0.0.1:6443/api": read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer`: true,
		"error: unexpected EOF": true,
		`Error from server (AlreadyExists): deployments.apps "web" already exists`: false,
		"error: timed out waiting for the condition on jobs/pi":                    false,
	} {
		if brokenConnection.MatchString(message) != want {
			t.Errorf("%s: %v", message, !want)
		}
	}
}

// TestWhatWasCarriedOutIsNoFailure: of a step that is run again, kubectl complains that it has nothing to do, and of nothing else.
func TestWhatWasCarriedOutIsNoFailure(t *testing.T) {
	const exists, other = `Error from server (AlreadyExists): pods "a" already exists`, `Error from server (Forbidden): pods "b" is forbidden`
	for _, test := range []struct {
		step, says string
		want       bool
	}{
		{"create -f job.yaml", exists, true},
		{"create -f job.yaml", "pod/c created\n" + exists + "\n" + exists, true},
		{"create -f job.yaml", exists + "\n" + other, false},
		{"create -f job.yaml", "", false},
		{"delete deployment web", `Error from server (NotFound): deployments.apps "web" not found`, true},
		{"rollout status deployment/web", `Error from server (NotFound): deployments.apps "web" not found`, false},
		{"rollout undo deployment/web --to-revision=1", "error: unable to find specified revision 1 in history", true},
		{"rollout pause deployment/web", `error: deployments.apps "web" is already paused`, true},
		{"taint node a b=c:NoExecute", "error: node a already has b taint(s) with same effect(s) and --overwrite is false", true},
		{"taint node a b-", `error: taint "b" not found`, true},
		{"scale deployment/web", exists, false},
	} {
		err := errors.New("kubectl " + test.step + ": exit status 1\n" + test.says)
		if got := wasCarriedOut(strings.Fields(test.step), err); got != test.want {
			t.Errorf("%s: %q: %v", test.step, test.says, got)
		}
	}
}

// TestFlowsAreRead: all of them have steps, and none has a command that does more when it is run again.
func TestFlowsAreRead(t *testing.T) {
	flows, err := readFlows(os.DirFS("testdata"))
	if err != nil || len(flows) == 0 {
		t.Fatalf("%d flows: %v", len(flows), err)
	}
	for _, f := range flows {
		for _, step := range f.steps {
			if strings.Contains(step, "rollout undo") && !strings.Contains(step, "--to-revision=") {
				t.Errorf("%s: %q undoes itself when it is run again: say which revision", f.name, step)
			}
		}
	}
}

// TestErrorLinesAreTheSameInEachFolder: they are compared between the clusters of two servers.
func TestErrorLinesAreTheSameInEachFolder(t *testing.T) {
	log := filepath.Join(t.TempDir(), "kubelet.log")
	text := fmt.Sprintf("I1130 10:00:00.000001    7 a.go:1] fine\nE1130 10:00:00.000001    7 b.go:2] \"no file\" file=\"%s/pki/ca.crt\" after=\"1.5s\"\n", filepath.Dir(log))
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lines, err := errorLines(log)
	if want := `b.go:2] "no file" file="FOLDER/pki/ca.crt" after="DURATION"`; err != nil || len(lines) != 1 || lines[want] != 1 {
		t.Errorf("%v %v, want %s", lines, err, want)
	}
}

// TestLoggedCountsFromTheBeginningOfAFlow: what was logged before does not count, and more often than said is wrong.
func TestLoggedCountsFromTheBeginningOfAFlow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hollow-proxy.log")
	const before = "Calling handler.OnServiceAdd\n"
	if err := os.WriteFile(file, []byte(before+strings.Repeat("Calling handler.OnServiceAdd\n", 2)), 0o600); err != nil {
		t.Fatal(err)
	}
	l := logs{"hollow-proxy": {file, int64(len(before))}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for arguments, want := range map[string]string{
		"hollow-proxy 2 Calling handler.OnServiceAdd": "",
		"hollow-proxy 1 Calling handler.OnServiceAdd": "2 times, and not 1",
		"hollow-proxy 3 Calling handler.OnServiceAdd": "has not logged",
		"hollow-proxy Calling handler.OnServiceAdd":   "a component, a number and a text",
		"hollow-proxy 1":                       "a component, a number and a text",
		"proxy 1 Calling handler.OnServiceAdd": "no component has this name",
	} {
		if err := l.await(ended, arguments); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("logged %s: %v, want %q", arguments, err, want)
		}
	}
}

// TestErrorsOfFaultsAreToldApart: those that break connections and leases are counted, and others are shown.
func TestErrorsOfFaultsAreToldApart(t *testing.T) {
	lines := map[string]int{
		`leaderelection.go:452] "Error retrieving lease lock" err="Get \"SERVER\": dial tcp ADDRESS:N: connect: connection refused"`: 3,
		`run.go:72] "command failed" err="leaderelection lost"`:                                                                      2,
		`job_controller.go:600] "Unhandled Error" err="syncing job: pods is forbidden"`:                                              1,
	}
	got := describeWithFaults(lines, nil)
	want := "5 lines that the faults cause; 1 others\n    1 times, without faults on kube-apiserver 0: job_controller.go:600] \"Unhandled Error\" err=\"syncing job: pods is forbidden\""
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestErrorsAreComparedByKindAndNumber: a few more are chance, and declared ones are counted together, whatever they are about.
func TestErrorsAreComparedByKindAndNumber(t *testing.T) {
	const forbidden = `replica_set.go:640] "Unhandled Error" err="sync \"quota/many\" failed with pods \"many-*\" is forbidden: exceeded quota"`
	behind := func(set string) string {
		return `replica_set.go:640] "Unhandled Error" err="sync \"` + set + `\" failed with read version: N is not as new as written version: N for group resource pods"`
	}
	conflict := func(file, resource string) string {
		return file + `:656] "Error syncing" err="Operation cannot be fulfilled on ` + resource + ` \"web\": the object has been modified; please apply your changes to the latest version and try again"`
	}
	for _, test := range []struct {
		name         string
		ours, theirs map[string]int
		want         string
	}{
		{"as often", map[string]int{forbidden: 22}, map[string]int{forbidden: 22}, ""},
		{"by chance more", map[string]int{forbidden: 19}, map[string]int{forbidden: 3}, ""},
		{"again and again", map[string]int{forbidden: 100}, map[string]int{forbidden: 3}, "100 times on Levelwire, and 3 on"},
		{"only here", map[string]int{forbidden: 1}, nil, "only on Levelwire"},
		{"only there", nil, map[string]int{forbidden: 1}, ""},
		{"declared", map[string]int{behind("a"): 5, behind("b"): 4}, nil, ""},
		{"declared, of another object", map[string]int{behind("a"): 40}, map[string]int{behind("b"): 20}, ""},
		{"declared, again and again", map[string]int{behind("a"): 40, behind("b"): 40}, map[string]int{behind("c"): 10}, "80 lines on Levelwire, and 10 on"},
		{"a budget's conflict", map[string]int{conflict("disruption.go", "poddisruptionbudgets.policy"): 1}, nil, ""},
		{"another conflict of the same controller", map[string]int{conflict("disruption.go", "pods"): 1}, nil, "only on Levelwire"},
		{"a conflict of another controller", map[string]int{conflict("replica_set.go", "replicasets.apps"): 1}, nil, "only on Levelwire"},
	} {
		got := strings.Join(complaints("kube-controller-manager", test.ours, test.theirs), "\n")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
