package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestKubectlHistory has each kubectl wait for things that happen while it
// cannot know of them: the server is killed, all of it happens on another
// address, history is compacted there, and the server is killed once more. When
// it is back where it was, every wait goes on from its version and ends.
func TestKubectlHistory(t *testing.T) {
	t.Parallel()
	for _, path := range kubectls(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*testTimeout)
			defer cancel()
			s := &forgetful{t: t, dir: t.TempDir()}
			k := &kubectl{t: t, ctx: ctx, path: path, namespace: "away", env: append(os.Environ(),
				"KUBECONFIG="+filepath.Join(s.dir, "data", "admin.kubeconfig"), "HOME="+t.TempDir())}
			home, elsewhere := freePort(t), freePort(t)
			s.start(ctx, home)
			k.run("create", "namespace", k.namespace)
			for _, name := range []string{"stays", "goes", "changes", "ripens"} {
				k.run("run", name, "--image=registry.example/any")
			}
			k.run("create", "deployment", "web", "--image=registry.example/web:1")
			old := k.version("pods")
			watches := k.sum("apiserver_longrunning_requests")
			waits := []*waiting{
				k.inBackground(`^pod/goes condition met$`, "wait", "--for=delete", "pod/goes", "--timeout=10m"),
				k.inBackground(`^pod/ripens condition met$`, "wait", "--for=condition=Ready", "pod/ripens", "--timeout=10m"),
				k.inBackground(`successfully rolled out$`, "rollout", "status", "deployment/web", "--timeout=10m"),
			}
			k.grows("apiserver_longrunning_requests", watches+len(waits))
			// A watch that ends soon and without an event makes client-go list again.
			events := k.sum("apiserver_watch_events_total")
			k.run("annotate", "pod/goes", "pod/ripens", "deployment/web", "waited-for=yes")
			k.grows("apiserver_watch_events_total", events+len(waits))

			s.process.kill()
			s.start(ctx, elsewhere)
			k.run("label", "pod", "changes", "color=red")
			k.run("delete", "pod", "goes", "--force", "--grace-period=0")
			k.run("run", "comes", "--image=registry.example/any")
			k.run("patch", "pod", "ripens", "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
			k.run("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p",
				`{"status":{"observedGeneration":2,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1}}`)
			s.awaitCompacted(k, k.version("pods"), elsewhere)
			s.process.kill()
			s.start(ctx, home)

			for _, w := range waits {
				w.end()
			}
			k.shows([]string{
				`^levelwire_cache_resumes_total\{group="",history="coalesced",resource="pods"\} 2$`,
				`^levelwire_cache_resumes_total\{group="apps",history="coalesced",resource="deployments"\} 1$`,
				`^levelwire_cache_expired_total\{group="",reason="old",resource="pods"\} 0$`,
			}, "get", "--raw", "/metrics")
			k.comesBack(old)
		})
	}
}

// forgetful is a server that keeps next to no history.
type forgetful struct {
	t       *testing.T
	dir     string
	process *process
}

func (s *forgetful) start(ctx context.Context, port int) {
	s.t.Helper()
	s.process = startProcess(s.t, s.dir, serve, serve, "--data-dir", filepath.Join(s.dir, "data"), "--secure-port", strconv.Itoa(port),
		"--compaction-interval=50ms", "--compaction-retention=50ms", "--compaction-revisions=-1", "--log-level=error")
	if err := s.process.awaitLine(ctx, "ready at"); err != nil {
		s.t.Fatal(err)
	}
}

func (k *kubectl) pathOf(resource, query string) string {
	group := map[string]string{"pods": "/api/v1", "deployments": "/apis/apps/v1"}[resource]
	return group + "/namespaces/" + k.namespace + "/" + resource + "?" + query
}

// version is that of a list of now.
func (k *kubectl) version(resource string) string {
	k.t.Helper()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(k.run("get", "--raw", k.pathOf(resource, "limit=1"))), &list); err != nil {
		k.t.Fatal(err)
	}
	return list.Metadata.ResourceVersion
}

// sum adds up a metric of whatever labels.
func (k *kubectl) sum(metric string) int {
	k.t.Helper()
	sum := 0
	for _, found := range regexp.MustCompile(`(?m)^`+metric+`\{.*\} (\d+)$`).FindAllStringSubmatch(k.run("get", "--raw", "/metrics"), -1) {
		n, err := strconv.Atoi(found[1])
		if err != nil {
			k.t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// grows waits until a metric is so much.
func (k *kubectl) grows(metric string, to int) {
	k.t.Helper()
	converge(k.ctx, k.t, func() error {
		if now := k.sum(metric); now < to {
			return fmt.Errorf("%s is %d, and not yet %d", metric, now, to)
		}
		return nil
	})
}

// awaitCompacted starts the server again until it cannot read a version any more.
// As long as it runs it remembers, whatever its store does; and something has to
// happen after a version for the store to forget it.
func (s *forgetful) awaitCompacted(k *kubectl, version string, port int) {
	s.t.Helper()
	n := 0
	converge(k.ctx, s.t, func() error {
		n++
		k.run("annotate", "pod", "stays", "--overwrite", "n="+strconv.Itoa(n))
		s.process.kill()
		s.start(k.ctx, port)
		out, err := k.try("get", "--raw", k.pathOf("pods", "resourceVersionMatch=Exact&resourceVersion="+version))
		switch {
		case err == nil:
			return errors.New("version " + version + " can still be read")
		case !strings.Contains(out, "too old"):
			return err
		}
		return nil
	})
}

// comesBack watches from before all that happened, as far as kubectl can: with a
// request of its own.
func (k *kubectl) comesBack(old string) {
	k.t.Helper()
	out := k.run("get", "--raw", k.pathOf("pods", "watch=1&timeoutSeconds=5&resourceVersion="+old)) //passes: the watch ends by it, when all is there
	seen, last := map[string]string{}, 0
	for line := range strings.Lines(out) {
		var e struct {
			Type   string
			Object struct {
				Metadata struct{ Name, ResourceVersion string }
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			k.t.Fatalf("%v in %s", err, line)
		}
		version, err := strconv.Atoi(e.Object.Metadata.ResourceVersion)
		if err != nil || version <= last {
			k.t.Errorf("version %s follows %d, %v", e.Object.Metadata.ResourceVersion, last, err)
		}
		last = version
		seen[e.Object.Metadata.Name] += e.Type
	}
	want := map[string]string{"stays": "MODIFIED", "goes": "DELETED", "changes": "MODIFIED", "ripens": "MODIFIED", "comes": "ADDED"}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		k.t.Errorf("a watch from %s gets %v, want %v", old, seen, want)
	}
}

// waiting is a kubectl that runs and is expected to say something in the end.
type waiting struct {
	k     *kubectl
	args  []string
	says  string
	ended chan struct{}
	out   []byte
	err   error
}

func (k *kubectl) inBackground(says string, args ...string) *waiting {
	w := &waiting{k: k, args: args, says: says, ended: make(chan struct{})}
	cmd := k.command(args...)
	go func() {
		defer close(w.ended)
		w.out, w.err = cmd.CombinedOutput()
	}()
	k.t.Cleanup(func() { <-w.ended }) // the context ends it
	return w
}

func (w *waiting) end() {
	w.k.t.Helper()
	<-w.ended
	if w.err != nil || !regexp.MustCompile("(?m)"+w.says).Match(w.out) {
		w.k.t.Errorf("kubectl %s ended with %v, and does not show %q:\n%s", strings.Join(w.args, " "), w.err, w.says, w.out)
	}
}
