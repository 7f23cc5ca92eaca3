package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/levelwire/levelwire/internal/childprocess"
)

// kubectls finds the programs to try: those of LEVELWIRE_KUBECTL, a list as
// in PATH, or the one that is installed.
func kubectls(t *testing.T) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("a tour takes a minute and a half: make test-kubectl")
	}
	if list := os.Getenv("LEVELWIRE_KUBECTL"); list != "" {
		return filepath.SplitList(list)
	}
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("no kubectl is installed; LEVELWIRE_KUBECTL=/path/kubectl-1:/path/kubectl-2 names some")
	}
	return []string{path}
}

// kubectl is one program, with its cluster and a namespace of its own.
type kubectl struct {
	t         *testing.T
	ctx       context.Context
	path      string
	namespace string
	dataDir   string // of the server
	env       []string
}

func (k *kubectl) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(k.ctx, k.path, append([]string{"--namespace", k.namespace}, args...)...)
	cmd.Env = k.env
	return cmd
}

// try runs kubectl and returns what it prints, all of it if it fails.
func (k *kubectl) try(args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := k.command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String() + stderr.String(), fmt.Errorf("kubectl %s: %w\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String(), nil
}

// run is try for what must succeed.
func (k *kubectl) run(args ...string) string {
	k.t.Helper()
	out, err := k.try(args...)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

// shows runs kubectl and looks for patterns in what it prints.
func (k *kubectl) shows(patterns []string, args ...string) {
	k.t.Helper()
	out := k.run(args...)
	for _, pattern := range patterns {
		if !regexp.MustCompile("(?m)" + pattern).MatchString(out) {
			k.t.Errorf("kubectl %s does not show %q:\n%s", strings.Join(args, " "), pattern, out)
		}
	}
}

// comesToShow is shows for what follows a little later: events, what pods use.
func (k *kubectl) comesToShow(patterns []string, args ...string) {
	k.t.Helper()
	converge(k.ctx, k.t, func() error {
		out, err := k.try(args...)
		for _, pattern := range patterns {
			if err == nil && !regexp.MustCompile("(?m)"+pattern).MatchString(out) {
				err = fmt.Errorf("kubectl %s does not show %q:\n%s", strings.Join(args, " "), pattern, out)
			}
		}
		return err
	})
}

// isUser looks for patterns in what "auth whoami" prints. Before 1.28 it asks in versions of the API
// that Kubernetes has off by default since, and is refused.
func (k *kubectl) isUser(patterns []string, flags ...string) {
	k.t.Helper()
	args := append([]string{"auth", "whoami"}, flags...)
	if regexp.MustCompile(`v1\.2[0-7]\.`).MatchString(k.run("version", "--client", "--output=json")) {
		k.refused("is not enabled in the cluster", args...)
		return
	}
	k.shows(patterns, args...)
}

// refused runs kubectl and expects it to fail and to say why.
func (k *kubectl) refused(why string, args ...string) {
	k.t.Helper()
	if out, err := k.try(args...); err == nil || !strings.Contains(out, why) {
		k.t.Errorf("kubectl %s is not refused with %q: %v\n%s", strings.Join(args, " "), why, err, out)
	}
}

// pods returns the names of the running pods with a label.
func (k *kubectl) pods(label string) ([]string, error) {
	out, err := k.try("get", "pods", "-l", label, "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.metadata.deletionTimestamp}{"\n"}{end}`)
	var names []string
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[1] == "Running" {
			names = append(names, fields[0])
		} else {
			names = append(names, strings.TrimSpace(line)+" (not running)")
		}
	}
	return names, err
}

// awaitPods waits until exactly so many pods have the label, all running and
// none of them called without.
func (k *kubectl) awaitPods(label string, count int, without string) []string {
	k.t.Helper()
	var names []string
	converge(k.ctx, k.t, func() (err error) {
		names, err = k.pods(label)
		switch {
		case err != nil:
			return err
		case len(names) != count || strings.Contains(strings.Join(names, " "), "not running") || slices.Contains(names, without):
			return fmt.Errorf("pods of %s are %q, want %d without %q", label, names, count, without)
		}
		return nil
	})
	return names
}

// TestKubectl takes the tour that the README and the examples promise, with
// each kubectl that there is.
func TestKubectl(t *testing.T) {
	t.Parallel()
	paths := kubectls(t)
	// The tour applies pods before their account, and takes kinds away that are
	// watched: warnings are to be expected.
	up := startUp(t, "--nodes=3", "--log-level=error")
	takeTours(t, paths, up.kubeconfig, filepath.Dir(up.kubeconfig))
}

// TestKubectlThroughARelay takes the same tour through a relay, and finds no
// difference. It is not parallel: two tours at a time take as long as one after
// the other, and may be late for their deadlines.
func TestKubectlThroughARelay(t *testing.T) {
	paths := kubectls(t)
	up := startUp(t, "--nodes=3", "--log-level=error")
	data, relay := filepath.Dir(up.kubeconfig), t.TempDir()
	certificates := filepath.Join(data, "pki")
	// Rights count for as long as they are cached, and the tour uses them at once.
	startInProcess(t, "The relay is ready", "relay", "--kubeconfig", up.kubeconfig, "--data-dir", relay, "--secure-port=0", "--log-level=error",
		"--client-ca-file", filepath.Join(certificates, "ca.crt"), "--authorization-cache-ttl=1ms", "--authorization-cache-denied-ttl=1ms",
		"--tls-cert-file", filepath.Join(certificates, "server.crt"), "--tls-private-key-file", filepath.Join(certificates, "server.key"))
	takeTours(t, paths, filepath.Join(relay, "admin.kubeconfig"), data)
}

// takeTours takes the tour with each kubectl, as the administrator of a
// kubeconfig. The authority in the data directory certifies further users.
func takeTours(t *testing.T, paths []string, kubeconfig, dataDir string) {
	for i, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*testTimeout)
			defer cancel()
			k := &kubectl{t: t, ctx: ctx, path: path, namespace: "tour-" + strconv.Itoa(i), dataDir: dataDir, env: append(os.Environ(),
				"KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())}
			k.run("create", "namespace", k.namespace)
			converge(ctx, t, func() error { // up is ready before the kubelets have registered their nodes
				out, err := k.try("get", "nodes")
				if ready := strings.Count(out, " Ready "); err == nil && ready < 3 {
					err = fmt.Errorf("%d nodes are ready", ready)
				}
				return err
			})
			k.shows([]string{`^node-1 +Ready `, `^node-2 +Ready `, `^node-3 +Ready `}, "get", "nodes")
			for _, tour := range tours {
				t.Run(tour.name, func(t *testing.T) { tour.take(k.in(t)) })
			}
			k.run("delete", "namespace", k.namespace)
			k.refused("not found", "get", "namespace", k.namespace)
		})
	}
}

// tours are the parts of the tour, in order; each leaves nothing behind that the
// next would stumble over.
var tours = []struct {
	name string
	take func(*kubectl)
}{
	{"Discovery", (*kubectl).discoveryTour},
	{"ReplicaSet", (*kubectl).replicaSetTour},
	{"Deployments", (*kubectl).deploymentTour},
	{"ClientSideApply", (*kubectl).clientApplyTour},
	{"ServerSideApply", (*kubectl).applyTour},
	{"Validation", (*kubectl).validationTour},
	{"Kustomize", (*kubectl).kustomizeTour},
	{"Wait", (*kubectl).waitTour},
	{"Rollouts", (*kubectl).rolloutTour},
	{"Sets", (*kubectl).setsTour},
	{"Changes", (*kubectl).changeTour},
	{"Nodes", (*kubectl).nodeTour},
	{"Identity", (*kubectl).identityTour},
	{"Authorization", (*kubectl).authorizationTour},
	{"CustomResources", (*kubectl).customTour},
	{"NotHere", (*kubectl).notHereTour},
	{"Job", (*kubectl).jobTour},
	{"Generators", (*kubectl).generatorTour},
}

// in is the same kubectl for a subtest.
func (k *kubectl) in(t *testing.T) *kubectl {
	sub := *k
	sub.t = t
	return &sub
}

func example(name string) string { return filepath.Join("..", "..", "examples", name) }

// replicaSetTour is the run flow, seen by a user.
func (k *kubectl) replicaSetTour() {
	k.t.Helper()
	// The line of a pod that is there already shows that the watch has begun.
	k.run("run", "already-there", "--image=registry.example/any")
	watched := k.startWatch()
	watched.await("already-there")
	k.run("create", "-f", example("replicaset.yaml"))
	k.refused("already exists", "create", "-f", example("replicaset.yaml"))
	names := k.awaitPods("app=hello", 3, "")
	for _, name := range names {
		watched.await(name + " Pending")
		watched.await(name + " Running")
		watched.mustBeOrdered(name)
	}
	k.run("wait", "--for=jsonpath={.status.readyReplicas}=3", "rs/hello", "--timeout=3m")
	k.shows([]string{`^hello +3 +3 +3 `}, "get", "rs")
	k.shows([]string{`^hello-\w+ +1/1 +Running +0 +\w+ +10\.244\.[123]\.\d+ +node-[123] `}, "get", "pods", "-o", "wide")

	k.run("delete", "pod", names[0])
	k.awaitPods("app=hello", 3, names[0])
	k.run("scale", "rs", "hello", "--replicas=5")
	k.awaitPods("app=hello", 5, names[0])
	k.run("scale", "rs", "hello", "--replicas=1")
	k.awaitPods("app=hello", 1, names[0])
	k.run("delete", "-f", example("replicaset.yaml"))
	k.awaitPods("app=hello", 0, "")
	k.run("delete", "pod", "already-there")
}

// deploymentTour applies what people apply, and takes it away again.
func (k *kubectl) deploymentTour() {
	k.t.Helper()
	files := []string{"-f", example("guestbook.yaml"), "-f", example("shop.yaml"), "-f", example("web.yaml")}
	begin := time.Now()
	k.run(append([]string{"apply"}, files...)...)
	k.run("wait", "--for=condition=Available", "deployment", "--all", "--timeout=3m")
	k.t.Logf("all Deployments are available after %v", time.Since(begin).Round(time.Millisecond))
	for line := range strings.Lines(k.run(append([]string{"apply"}, files...)...)) {
		if !strings.HasSuffix(line, " unchanged\n") {
			k.t.Errorf("applied once more: %s", line)
		}
	}
	converge(k.ctx, k.t, k.servicesHaveEndpoints)
	k.comesToShow([]string{`^Name: +storefront$`, `RollingUpdate`, `Available +True`, `Scaled up replica set storefront-\w+`}, "describe", "deployment", "storefront")
	k.comesToShow([]string{`^Endpoints: +10\.244\.\d+\.\d+:8080`}, "describe", "service", "storefront")
	k.comesToShow([]string{`^Status: +Running`, `Successfully assigned`, `^Node: +node-`, `app=storefront`}, "describe", "pod", "-l", "app=storefront")
	k.shows([]string{`^Name: +node-1$`, `Ready +True`, `cpu +`}, "describe", "node", "node-1")
	pods, err := k.pods("app=storefront")
	if err != nil || len(pods) != 1 {
		k.t.Fatalf("%v, %v", pods, err)
	}

	k.run("delete", "-f", example("guestbook.yaml"))
	k.run("delete", "--wait=false", "-f", example("shop.yaml"), "-f", example("web.yaml"))
	converge(k.ctx, k.t, func() error {
		left, err := k.try("get", "deployments,replicasets,pods,services,endpointslices", "-o", "name")
		if err == nil && left != "" {
			err = fmt.Errorf("what is left of deleted manifests:\n%s", left)
		}
		return err
	})
}

// applyTour applies on the server's side: alone, against another manager, and
// in the place of what was applied on kubectl's side.
func (k *kubectl) applyTour() {
	k.t.Helper()
	file := filepath.Join(k.t.TempDir(), "settings.yaml")
	write := func(size string) {
		manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {app: tour}}\ndata: {size: " + size + "}\n"
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			k.t.Fatal(err)
		}
	}
	write("small")
	version := []string{"get", "configmap", "settings", "-o", "jsonpath={.metadata.resourceVersion}"}
	k.shows([]string{`^configmap/settings serverside-applied$`}, "apply", "--server-side", "-f", file)
	before := k.run(version...)
	k.shows([]string{`^configmap/settings serverside-applied$`}, "apply", "--server-side", "-f", file)
	if after := k.run(version...); after != before {
		k.t.Errorf("applying the same again made version %s of %s", after, before)
	}
	write("large")
	k.refused(`Apply failed with 1 conflict: conflict with "kubectl": .data.size`, "apply", "--server-side", "--field-manager=other", "-f", file)
	k.shows([]string{`serverside-applied \(server dry run\)$`}, "apply", "--server-side", "--dry-run=server", "-f", file)
	k.shows([]string{`^small$`}, "get", "configmap", "settings", "-o", `jsonpath={.data.size}{"\n"}`)
	k.run("apply", "--server-side", "--force-conflicts", "--field-manager=other", "-f", file)
	k.shows([]string{`^ +f:size: `, `manager: other$`, `operation: Apply$`}, "get", "configmap", "settings", "-o", "yaml", "--show-managed-fields")
	k.run("delete", "configmap", "settings")

	k.run("apply", "-f", file)
	write("small")
	k.run("apply", "--server-side", "-f", file)
	k.shows([]string{`manager: kubectl$`, `"size":"small"`}, "get", "configmap", "settings", "-o", "yaml", "--show-managed-fields")
	k.run("apply", "-f", file)
	k.run("delete", "-f", file)
}

// servicesHaveEndpoints looks for an EndpointSlice with ready endpoints for
// each Service.
func (k *kubectl) servicesHaveEndpoints() error {
	services, err := k.try("get", "services", "-o", `jsonpath={.items[*].metadata.name}`)
	if err != nil {
		return err
	}
	slices, err := k.try("get", "endpointslices", "-o", `jsonpath={range .items[*]}{.metadata.labels.kubernetes\.io/service-name} {.endpoints[*].conditions.ready}{"\n"}{end}`)
	if err != nil {
		return err
	}
	if services == "" {
		return fmt.Errorf("no services")
	}
	for _, name := range strings.Fields(services) {
		if !regexp.MustCompile(`(?m)^` + name + ` true( true)*$`).MatchString(slices) {
			return fmt.Errorf("service %s has no ready endpoints:\n%s", name, slices)
		}
	}
	return nil
}

// rolloutTour restarts a Deployment, changes its image and goes back.
func (k *kubectl) rolloutTour() {
	k.t.Helper()
	k.run("apply", "-f", example("web.yaml"))
	k.shows(done, "rollout", "status", "deployment", "web", "--timeout=3m")
	k.run("rollout", "restart", "deployment", "web")
	k.shows(done, "rollout", "status", "deployment", "web", "--timeout=3m")
	k.shows([]string{`^1 `, `^2 `}, "rollout", "history", "deployment", "web")
	k.run("set", "image", "deployment", "web", "web=registry.example/web:2")
	k.shows(done, "rollout", "status", "deployment", "web", "--timeout=3m")
	k.shows([]string{`registry\.example/web:2`}, "rollout", "history", "deployment", "web", "--revision=3")
	k.run("rollout", "undo", "deployment", "web")
	k.shows(done, "rollout", "status", "deployment", "web", "--timeout=3m")
	k.shows([]string{`^1 `, `^3 `, `^4 `}, "rollout", "history", "deployment", "web")
	k.awaitPods("app=web", 4, "")
	k.shows([]string{`^registry.example/web:1( registry.example/web:1){3}$`}, "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.containers[*].image}")
	k.run("delete", "-f", example("web.yaml"))
	k.awaitPods("app=web", 0, "")
}

func (k *kubectl) jobTour() {
	k.t.Helper()
	k.run("create", "-f", example("job.yaml"))
	k.run("wait", "--for=condition=Complete", "job/count", "--timeout=3m")
	k.shows([]string{`^count .*5/5 `}, "get", "jobs")
	k.run("delete", "-f", example("job.yaml"))
	k.awaitPods("job-name=count", 0, "")
}

// podWatch is a `kubectl get pods -w` that runs.
type podWatch struct {
	k      *kubectl
	screen *screen
}

// startWatch starts one. Its lines are kept as "name status".
func (k *kubectl) startWatch() *podWatch {
	k.t.Helper()
	cmd := k.command("get", "pods", "-w")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if err := childprocess.Start(cmd); err != nil {
		k.t.Fatal(err)
	}
	w := &podWatch{k, newScreen()}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if fields := strings.Fields(lines.Text()); len(fields) > 2 {
				fmt.Fprintln(w.screen, fields[0], fields[2])
			}
		}
	}()
	k.t.Cleanup(func() {
		_ = cmd.Process.Kill() // the watch has no other end
		<-ended
		_ = cmd.Wait() // says that it was killed
	})
	return w
}

func (w *podWatch) await(text string) {
	w.k.t.Helper()
	w.screen.await(w.k.ctx, w.k.t, text)
}

// mustBeOrdered checks that a pod was pending before it ran.
func (w *podWatch) mustBeOrdered(name string) {
	w.k.t.Helper()
	shown, _ := w.screen.read()
	if strings.Index(shown, name+" Pending") > strings.Index(shown, name+" Running") {
		w.k.t.Errorf("%s ran before it was pending:\n%s", name, shown)
	}
}
