package relay

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/levelwire/levelwire/internal/childprocess"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// step is a command of the tour.
type step struct {
	command string // split at spaces; $ns is the namespace
	input   string // a manifest, for -f -
	fails   bool
}

const (
	manifest = `
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: tour}}
spec: {containers: [{name: c, image: registry.example/c:1}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: r, labels: {app: tour}}
spec: {replicas: 1, selector: {matchLabels: {app: none}}, template: {metadata: {labels: {app: none}}, spec: {containers: [{name: c, image: i}]}}}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: l, labels: {app: tour}}
spec: {holderIdentity: tour}
`
	applied = `
apiVersion: v1
kind: ConfigMap
metadata: {name: applied, labels: {app: tour}}
data: {size: small}
`
)

var changed = strings.Replace(applied, "small", "large", 1)

// tour is what kubectl can do with what the server of the upstream libraries has: it serves
// neither subresources but the status, nor reviews, events, OpenAPI v2, short names, and columns
// of its own. (A relay shows the built-in kinds with the columns of Kubernetes 1.37.)
var tour = []step{
	{command: "api-versions"}, {command: "api-resources --sort-by=name"}, {command: "api-resources --verbs=list,watch -o name"},
	{command: "get --raw /version"}, {command: "get --raw /api/v1"}, {command: "get --raw /apis"}, {command: "get --raw /nothing", fails: true},
	{command: "get namespace $ns -o yaml"},
	{command: "get pods"}, {command: "get nothings", fails: true}, {command: "get configmap none", fails: true},
	{command: "create configmap one --from-literal=a=1"}, {command: "create configmap one --from-literal=a=1", fails: true},
	{command: "create configmap dry --from-literal=a=1 --dry-run=server -o yaml"}, {command: "get configmap dry", fails: true},
	{command: "create --validate=false -f -", input: manifest}, {command: "create --validate=false -f -", input: manifest, fails: true},
	{command: "get configmaps --server-print=false"}, {command: "get configmaps,pods -o wide --server-print=false"}, {command: "get configmaps -o yaml"}, {command: "get configmap one -o json"},
	{command: "get configmaps,pods,replicasets,leases -o name"}, {command: "get configmap one -o jsonpath={.data.a}"},
	{command: "get configmaps -o custom-columns=N:.metadata.name,A:.data.a"}, {command: "get configmaps -o go-template={{.kind}}"},
	{command: "get -f - -o name", input: manifest}, {command: "get pods -l app=tour --server-print=false"}, {command: "get pods -l app!=tour --server-print=false"},
	{command: "get pods --field-selector=metadata.name=p --show-labels --server-print=false"}, {command: "get pods --field-selector=status.phase=Pending -o name"},
	{command: "get pods --field-selector=spec.nothing=p", fails: true},
	{command: "get configmaps --chunk-size=1 --sort-by=.metadata.name --server-print=false"}, {command: "get configmaps --show-managed-fields -o yaml"},
	{command: "describe --show-events=false configmap one"}, {command: "describe --show-events=false lease l"},
	{command: "label configmap one tier=gold"}, {command: "label configmap one tier=silver", fails: true}, {command: "label configmap one tier=silver --overwrite"},
	{command: "annotate configmap one note=here"}, {command: "get configmaps -L tier --server-print=false"},
	{command: `patch configmap one --type=merge -p {"data":{"a":"2"}}`}, {command: `patch configmap one --type=json -p [{"op":"add","path":"/data/b","value":"3"}]`},
	{command: `patch configmap one --type=json -p [{"op":"test","path":"/data/b","value":"4"}]`, fails: true},
	{command: `patch pod p -p {"spec":{"containers":[{"name":"c","image":"registry.example/c:2"}]}}`},
	{command: `patch pod p --subresource=status --type=merge -p {"status":{"phase":"Running"}}`}, {command: "get pod p -o jsonpath={.status.phase}"},
	{command: "get pod p --subresource=status -o name"}, {command: "set image pod/p c=registry.example/c:3"}, {command: "get pod p -o yaml"},
	{command: "scale replicaset r --replicas=2", fails: true},
	{command: "apply --validate=false -f -", input: applied}, {command: "apply --validate=false -f -", input: applied}, {command: "diff -f -", input: applied},
	{command: "diff -f -", input: changed, fails: true}, {command: "apply --validate=false -f -", input: changed}, {command: "apply view-last-applied configmap applied"},
	{command: "apply --validate=false --server-side -f -", input: applied}, {command: "apply --validate=false --server-side --field-manager=other -f -", input: changed, fails: true},
	{command: "apply --validate=false --server-side --field-manager=other --force-conflicts -f -", input: changed},
	{command: "apply --validate=false --prune -l app=none -f -", input: applied, fails: true},
	{command: "get configmap applied -o yaml --show-managed-fields"},
	{command: "replace --validate=false -f -", input: applied}, {command: "replace --validate=false --force -f -", input: changed}, {command: "edit --validate=false configmap applied"},
	{command: "get configmap applied -o jsonpath={.data}"},
	{command: "run ran --image=registry.example/c:1"}, {command: "get pod ran -o jsonpath={.spec.containers[*].image}"},
	{command: "wait --for=jsonpath={.data.a}=2 configmap/one --timeout=1m"}, {command: "wait --for=create pod/ran --timeout=1m"},
	{command: "delete pod ran --wait=false"}, {command: "wait --for=delete pod/ran --timeout=1m"}, {command: "get pod ran", fails: true},
	{command: "delete configmap none --ignore-not-found"}, {command: "delete configmap none", fails: true}, {command: "delete pods,replicasets,leases -l app=tour"},
	{command: "delete configmaps --all"}, {command: "get configmaps,pods,replicasets,leases"},
}

// TestKubectl takes a tour with kubectl at the server and through a relay: each command prints
// the same and ends alike.
func TestKubectl(t *testing.T) {
	paths := filepath.SplitList(os.Getenv("LEVELWIRE_KUBECTL"))
	if len(paths) == 0 {
		t.Skip("LEVELWIRE_KUBECTL does not name kubectls (a list, as PATH is)")
	}
	relay, behind := start(t)
	direct := kubeconfig(t, behind)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			there, through := newKubectl(ctx, t, path, direct, "direct"), newKubectl(ctx, t, path, relay.Kubeconfig(), "through")
			for _, s := range append(append([]step{{command: "create namespace $ns"}}, tour...), step{command: "delete namespace $ns"}) {
				want, wantErr := there.run(s)
				got, gotErr := through.run(s)
				if (wantErr != nil) != s.fails {
					t.Errorf("kubectl %s, at the server itself: %v\n%s", s.command, wantErr, want)
				}
				if (gotErr != nil) != (wantErr != nil) || got != want {
					t.Errorf("kubectl %s: %v\n%s\nwant %v\n%s", s.command, gotErr, got, wantErr, want)
				}
			}
			through.namespace = "default"
			through.watches(t)
		})
	}
}

// kubectl is a program with a cluster and a namespace.
type kubectl struct {
	ctx             context.Context
	path, namespace string
	env             []string
}

func newKubectl(ctx context.Context, t *testing.T, path, kubeconfig, namespace string) *kubectl {
	t.Helper()
	home := t.TempDir()
	editor := filepath.Join(home, "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed -i.bak 's/large/edited/' \"$1\"\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return &kubectl{ctx, path, namespace, append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+home, "EDITOR="+editor, "KUBE_EDITOR="+editor)}
}

func (k *kubectl) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(k.ctx, k.path, append([]string{"--namespace", k.namespace}, args...)...)
	cmd.Env = k.env
	return cmd
}

// run returns what a command prints, without what differs between two objects that are alike.
func (k *kubectl) run(s step) (string, error) {
	words := strings.Split(s.command, " ")
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "$ns", k.namespace)
	}
	cmd := k.command(words...)
	cmd.Stdin = strings.NewReader(s.input)
	printed, err := cmd.CombinedOutput()
	text := strings.ReplaceAll(string(printed), k.namespace, "NAMESPACE")
	for _, r := range replacements {
		text = r.pattern.ReplaceAllString(text, r.by)
	}
	return text, err
}

var replacements = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.0-9]*( ?[+-]\d{4}|Z)?`), "TIME"},
	{regexp.MustCompile(`([rR]esource ?Version"?: *"?)\d+`), "${1}VERSION"},
	{regexp.MustCompile(`(LIVE-|MERGED-|kubectl_replace_)\d+`), "${1}"},
	{regexp.MustCompile(`\b\d+m?s\b`), "AGE"},
	{regexp.MustCompile(` +`), " "},
}

// watches looks for the lines of a watch.
func (k *kubectl) watches(t *testing.T) {
	t.Helper()
	if out, err := k.command("create", "configmap", "before").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := k.command("get", "configmaps", "-w", "-o", "name")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := childprocess.Start(cmd); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // the watch has no other end
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(stdout)
	await := func(line string) {
		t.Helper()
		for lines.Text() != line {
			if !lines.Scan() {
				t.Fatalf("the watch ends without %s: %v", line, lines.Err())
			}
		}
	}
	await("configmap/before")
	if out, err := k.command("create", "configmap", "after").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	await("configmap/after")
}

// kubeconfig writes a client configuration to a file.
func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: "any"}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
