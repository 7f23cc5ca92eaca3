package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestWatchHistoryTop looks at a server by the three commands.
func TestWatchHistoryTop(t *testing.T) {
	ctx := maintenanceContext(t)
	c, _ := runServer(ctx, t, t.TempDir())
	config := kubeconfigOf(t, c)
	out, end := startCommand(ctx, t, "watch", "cm", "-n", "default", "--kubeconfig", config)
	lines, endJSON := startCommand(ctx, t, "watch", "configmaps", "-A", "-o", "json", "--initial", "--field-selector", "metadata.name=seen", "--kubeconfig", config)
	out.await(ctx, t, "opened")
	// What is written before the second watch has its initial events is one of them.
	lines.await(ctx, t, "initial-events-end")
	version := createNamed(ctx, t, c, "seen")
	changed, err := configMapsOf(c).UpdateWithRetry(ctx, "seen", func(o *corev1.ConfigMap) error {
		o.Data = map[string]string{"color": "blue"}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out.await(ctx, t, `ADDED +`+version+` .*default/seen`)
	out.await(ctx, t, `MODIFIED +`+changed.ResourceVersion+` .*default/seen`)
	lines.await(ctx, t, `"type":"MODIFIED","resourceVersion":"`+changed.ResourceVersion+`"`)
	command := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if code := run(ctx, append(append([]string{"levelwire"}, args...), "--kubeconfig", config), &out, &out); code != want {
			t.Errorf("%q: exit code %d: %s", args, code, out.String())
		}
		return out.String()
	}
	history := command(exitOK, "history", "configmap", "seen", "-n", "default")
	if !regexp.MustCompile(`(?s)` + version + ` .*ADDED.*` + changed.ResourceVersion + ` .*MODIFIED\n.*\+ data: \{"color":"blue"\}`).MatchString(history) {
		t.Error(history)
	}
	top := command(exitOK, "top", "--once", "--rows", "100")
	for _, want := range []string{"REQUESTS", "configmaps", "WATCHES, BY CLIENT", "levelwire/", "MEMORY, BY RESOURCE", "lists saved"} {
		if !strings.Contains(top, want) {
			t.Errorf("%q is not in\n%s", want, top)
		}
	}
	command(exitFailed, "history", "pods", "missing", "-n", "default")
	if refusal := command(exitFailed, "watch", "gadgets"); !strings.Contains(refusal, `no resource "gadgets"`) {
		t.Error(refusal)
	}
	command(exitUsage, "watch", "pods", "--initial", "--since", "5")
	command(exitUsage, "history", "pods")
	command(exitUsage, "top", "--interval", "1ns")
	if end() != exitOK || endJSON() != exitOK {
		t.Error(out.text.String(), lines.text.String())
	}
	if strings.Contains(out.text.String(), "\x1b") {
		t.Error("there are colours outside of a terminal")
	}
}
