package main

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// TestPartsLeftOut: what is left out is not made.
func TestPartsLeftOut(t *testing.T) {
	s, err := server.Listen(server.Config{DataDir: t.TempDir(), Storage: server.Memory, SecurePort: server.AnyPort, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop() // it ends as soon as it runs
	defer func() { _ = s.Run(ctx) }()
	for without, want := range map[string][]string{
		"":                    {"controllers", "scheduler", "proxy", "metrics", "kubelets"},
		"scheduler":           {"controllers", "proxy", "metrics", "kubelets"},
		"kubelets,metrics":    {"controllers", "scheduler", "proxy"},
		"controllers,proxy":   {"scheduler", "metrics", "kubelets"},
		"scheduler,scheduler": {"controllers", "proxy", "metrics", "kubelets"},
	} {
		p := upPartsOf(t, "--without", without)
		made, err := newComponents(s, *p, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range made {
			names = append(names, c.name)
			c.closeIdle()
		}
		if !slices.Equal(names, want) {
			t.Errorf("--without %q: made are %q, want %q", without, names, want)
		}
	}
}

func upPartsOf(t *testing.T, args ...string) *upParts {
	t.Helper()
	cmd := newUp()
	var p upParts
	cmd.ResetFlags()
	p.register(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	if err := p.complete(cmd); err != nil {
		t.Fatal(err)
	}
	return &p
}

// TestPartsRefused: flags that make no sense are one line that names the flag, before anything is made.
func TestPartsRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"up", "--without=etcd"}, `--without "etcd": it is one of controllers, scheduler, kubelets, proxy, metrics`},
		{[]string{"up", "--without="}, ""},
		{[]string{"up", "--without=kubelets", "--nodes=2"}, "--without kubelets and --nodes exclude each other"},
		{[]string{"up", "--without=controllers", "--controllers=*"}, "--without controllers and --controllers exclude each other"},
		{[]string{"up", "--controllers=-nodes"}, `--controllers: there is no controller "nodes"`},
		{[]string{"up", "--controllers="}, "--controllers: no controller is named"},
		{[]string{"up", "--nodes=-1"}, "--nodes -1"},
		{[]string{"controllers", "--controllers=nodes"}, `--controllers: there is no controller "nodes"`},
	} {
		if tc.want == "" {
			upPartsOf(t, tc.args[1:]...)
			continue
		}
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"levelwire"}, append(tc.args, "--log-level=error")...), &stdout, &stderr)
		if code != exitUsage || !strings.Contains(stderr.String(), tc.want) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%q: exit code %d, want %d and %q, said\n%s", tc.args, code, exitUsage, tc.want, stderr.String())
		}
	}
}

// TestOwnParts: what was left out can be brought by other processes, and a Deployment runs.
func TestOwnParts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	up := startUp(t, "--without=controllers,scheduler,kubelets")
	if want := "with 0 nodes, without controllers, scheduler, kubelets."; !strings.Contains(up.stdout, want) {
		t.Errorf("it does not say %q:\n%s", want, up.stdout)
	}
	c, err := client.FromKubeconfig(up.kubeconfig, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	labels := map[string]string{"app": "own"}
	deployments := client.For[*appsv1.Deployment](c).Namespace(metav1.NamespaceDefault)
	_, err = deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "own"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.k8s.io/pause:3.10"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(up.kubeconfig)
	for name, args := range map[string][]string{
		"controllers": {"--controllers=deployment-controller,replicaset-controller,node-lifecycle-controller", "--use-service-account-credentials"},
		"scheduler":   nil,
		"kubelet":     {"--node-name=own-node"},
	} {
		startProcess(t, dir, name, append([]string{name, "--kubeconfig", up.kubeconfig}, args...)...)
	}
	w, err := deployments.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for {
		event, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		if event.Object.Status.AvailableReplicas == 1 {
			return
		}
	}
}
