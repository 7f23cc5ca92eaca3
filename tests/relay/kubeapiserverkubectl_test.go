package relay

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// variable is what differs between two answers of kubectl that say the same.
var variable = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.0-9]*( ?[+-]\d{4}|Z)?`), "TIME"},
	{regexp.MustCompile(`[MTWFS][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}`), "TIME"},
	{regexp.MustCompile(`(?i)(resource ?version"?: *"?)\d+`), "${1}VERSION"},
	{regexp.MustCompile(`(LIVE-|MERGED-|kubectl_replace_|kubectl-edit-)\d+`), "${1}"},
	{regexp.MustCompile(`\b(\d+d)?(\d+h)?(\d+m)?\d+m?s\b|\b\d+m\b`), "AGE"},
	{regexp.MustCompile(`X509SHA256=[0-9a-f]+`), "CERTIFICATE"},
	{regexp.MustCompile(`10\.96\.\d+\.\d+`), "ADDRESS"},
	{regexp.MustCompile(`https://127.0.0.1:\d+`), "SERVER"},
	{regexp.MustCompile(`pod-template-hash=\w+|web-[0-9a-f]{8,10}`), "HASH"},
	{regexp.MustCompile(` +`), " "},
}

// kubectlOnBoth runs the commands of testdata/kubectl at kube-apiserver and through three relays: each prints the same and
// ends alike.
func kubectlOnBoth(t *testing.T, direct, _, three front) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	commands, err := os.ReadFile(filepath.Join("testdata", "kubectl", "commands"))
	if err != nil {
		t.Fatal(err)
	}
	there, through := newKubectl(ctx, t, direct, "tour-direct", "tour-through"), newKubectl(ctx, t, three, "tour-through", "tour-direct")
	tried := 0
	for line := range strings.Lines(string(commands)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		command, fails := strings.CutPrefix(line, "! ")
		want, wantErr := there.run(command)
		got, gotErr := through.run(command)
		if (wantErr != nil) != fails {
			t.Errorf("kubectl %s, at kube-apiserver itself: %v\n%s", command, wantErr, want)
		}
		if (gotErr != nil) != (wantErr != nil) || got != want {
			t.Errorf("kubectl %s, through relays: %v\n%s\nwant %v\n%s", command, gotErr, got, wantErr, want)
		}
		tried++
	}
	t.Logf("%d commands", tried)
}

// kubectl is a program with a server and a namespace. Of what it prints about all namespaces it leaves out the lines with the other one's.
type kubectl struct {
	ctx                    context.Context
	path, namespace, other string
	env                    []string
}

func newKubectl(ctx context.Context, t *testing.T, s front, namespace, other string) *kubectl {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(*binaries, "kubectl"))
	if err != nil {
		t.Fatal(err)
	}
	return &kubectl{ctx, path, namespace, other, append(os.Environ(), "KUBECONFIG="+s.admin, "HOME="+t.TempDir(), "KUBE_EDITOR=sed -i 's/large/edited/'")}
}

// run returns what a command prints, without what differs between two objects that are alike.
func (k *kubectl) run(command string) (string, error) {
	words := strings.Split(strings.ReplaceAll(command, "$ns", k.namespace), " ")
	for i, word := range words {
		if strings.HasPrefix(word, "--schedule=") {
			words[i] = strings.ReplaceAll(word, "_", " ")
		}
	}
	cmd := exec.CommandContext(k.ctx, k.path, append([]string{"--namespace", k.namespace}, words...)...)
	cmd.Env, cmd.Dir = k.env, filepath.Join("testdata", "kubectl")
	printed, err := cmd.CombinedOutput()
	var text string
	for line := range strings.Lines(string(printed)) {
		if !strings.Contains(line, k.other) {
			text += strings.ReplaceAll(line, k.namespace, "NAMESPACE")
		}
	}
	for _, v := range variable {
		text = v.pattern.ReplaceAllString(text, v.by)
	}
	return text, err
}
