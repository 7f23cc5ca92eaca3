package helm

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/tests/peers/program"
)

const (
	chart = "testdata/bakery"
	// testTimeout is how long the whole life of a release may take.
	testTimeout = 5 * time.Minute
)

var throughRelay = flag.Bool("through-relay", false, "put a relay between the server and helm")

var ovens = schema.GroupVersionResource{Group: "bakery.example.com", Version: "v1", Resource: "ovens"}

// TestReleases takes a release through its life with each helm.
func TestReleases(t *testing.T) {
	programs := filepath.SplitList(os.Getenv("LEVELWIRE_HELM"))
	if len(programs) == 0 {
		t.Skip("LEVELWIRE_HELM does not name helms (a list, as PATH is)")
	}
	levelwire := program.Build(t)
	at := through(t, levelwire, program.Start(t, levelwire, "up", "--storage=memory"))
	for i, path := range programs {
		t.Run(filepath.Base(path), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			newBakery(ctx, t, path, at.Kubeconfig, fmt.Sprintf("bakery-%d", i)).live("--create-namespace")
		})
	}
}

// endpoint is where helm finds the API.
type endpoint struct {
	Kubeconfig string // an administrator's
	data       string // the server's data directory
	relay      string // the relay's URL, if there is one
}

// through returns a server, or with -through-relay a relay in front of it.
func through(t *testing.T, levelwire string, server *program.Server) endpoint {
	t.Helper()
	e := endpoint{Kubeconfig: server.Kubeconfig, data: filepath.Dir(server.Kubeconfig)}
	if *throughRelay {
		_, e.relay = program.Relay(t, levelwire, server.Upstream())
		e.Kubeconfig = program.At(t, e.relay, e.Kubeconfig)
	}
	return e
}

// bakery is a release of the chart in a namespace of its own.
type bakery struct {
	t         *testing.T
	ctx       context.Context
	helm      string
	namespace string
	env       []string
	client    kubernetes.Interface
	dynamic   dynamic.Interface
}

func newBakery(ctx context.Context, t *testing.T, helm, kubeconfig, namespace string) *bakery {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return &bakery{
		t: t, ctx: ctx, helm: helm, namespace: namespace,
		env:    append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir()),
		client: kubernetes.NewForConfigOrDie(config), dynamic: dynamic.NewForConfigOrDie(config),
	}
}

// run runs helm, which must succeed and print all of what is wanted.
func (b *bakery) run(want []string, args ...string) {
	b.t.Helper()
	begin := time.Now()
	out, err := b.command(args).CombinedOutput()
	if err != nil {
		b.t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	for _, text := range want {
		if !strings.Contains(string(out), text) {
			b.t.Errorf("helm %s does not say %q:\n%s", strings.Join(args, " "), text, out)
		}
	}
	b.t.Logf("helm %s: %v", args[0], time.Since(begin).Round(time.Millisecond))
}

// command returns helm in the release's namespace. It has not begun.
func (b *bakery) command(args []string) *exec.Cmd {
	cmd := exec.CommandContext(b.ctx, b.helm, slices.Concat(args, []string{"--namespace", b.namespace})...)
	cmd.Env = b.env
	return cmd
}

// live is the life of a release: installed with these arguments, tried, upgraded, rolled
// back, gone.
func (b *bakery) live(install ...string) {
	b.t.Helper()
	b.run([]string{"STATUS: deployed", "REVISION: 1"}, slices.Concat([]string{"install", "shop", chart, "--wait", "--timeout=2m"}, install)...)
	b.mustBe("rye", 2)
	b.hooksRan("pre-install", "post-install")
	b.run([]string{"deployed"}, "list")
	b.run([]string{"Succeeded"}, "test", "shop", "--timeout=2m")

	b.run([]string{"REVISION: 2"}, "upgrade", "shop", chart, "--wait", "--timeout=2m", "--set=replicas=3,bread=wheat,window=cake")
	b.mustBe("wheat", 3)
	b.hooksRan("pre-upgrade", "post-upgrade")
	if _, err := b.client.CoreV1().ConfigMaps(b.namespace).Get(b.ctx, "shop-window", metav1.GetOptions{}); err != nil {
		b.t.Errorf("what the upgrade adds: %v", err)
	}
	b.run([]string{"bread: wheat"}, "get", "values", "shop")
	b.run([]string{"kind: Oven"}, "get", "manifest", "shop")

	b.run([]string{"Rollback was a success"}, "rollback", "shop", "1", "--wait", "--timeout=2m")
	b.mustBe("rye", 2)
	b.hooksRan("pre-rollback")
	b.mustBeGone("the upgrade's object, rolled back", func() error {
		_, err := b.client.CoreV1().ConfigMaps(b.namespace).Get(b.ctx, "shop-window", metav1.GetOptions{})
		return err
	})
	b.run([]string{"Install complete", "Upgrade complete", "Rollback to 1"}, "history", "shop")

	b.run([]string{`release "shop" uninstalled`}, "uninstall", "shop", "--wait", "--timeout=2m")
	b.hooksRan("pre-delete")
	b.mustBeGone("the Deployment", func() error {
		_, err := b.client.AppsV1().Deployments(b.namespace).Get(b.ctx, "shop", metav1.GetOptions{})
		return err
	})
	b.mustBeGone("the custom resource", func() error {
		_, err := b.dynamic.Resource(ovens).Namespace(b.namespace).Get(b.ctx, "shop", metav1.GetOptions{})
		return err
	})
	secrets, err := b.client.CoreV1().Secrets(b.namespace).List(b.ctx, metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil || len(secrets.Items) > 0 {
		b.t.Errorf("%d records of the release are left, %v", len(secrets.Items), err)
	}
}

// mustBe checks what runs: --wait means that it does now, without looking twice.
func (b *bakery) mustBe(bread string, replicas int32) {
	b.t.Helper()
	deployment, err := b.client.AppsV1().Deployments(b.namespace).Get(b.ctx, "shop", metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	// The old pods may still be on their way out, and may be counted as available.
	if s := deployment.Status; s.ReadyReplicas < replicas || s.UpdatedReplicas != replicas || s.ObservedGeneration != deployment.Generation {
		b.t.Errorf("the Deployment was waited for, and is %+v, want %d", s, replicas)
	}
	if got := deployment.Spec.Template.Annotations["bread"]; got != bread {
		b.t.Errorf("the pods' bread is %q, want %q", got, bread)
	}
	oven, err := b.dynamic.Resource(ovens).Namespace(b.namespace).Get(b.ctx, "shop", metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	if got := fmt.Sprint(oven.Object["spec"]); got != "map[bread:"+bread+" trays:4]" {
		b.t.Errorf("the oven is %s, want %s and the default of 4 trays", got, bread)
	}
}

// hooksRan checks that the Jobs of these moments, which helm leaves until they
// are due again, are complete.
func (b *bakery) hooksRan(moments ...string) {
	b.t.Helper()
	for _, moment := range moments {
		job, err := b.client.BatchV1().Jobs(b.namespace).Get(b.ctx, "shop-"+moment, metav1.GetOptions{})
		if err != nil {
			b.t.Errorf("the hook: %v", err)
			continue
		}
		complete := false
		for _, condition := range job.Status.Conditions {
			complete = complete || condition.Type == batchv1.JobComplete && condition.Status == corev1.ConditionTrue
		}
		if !complete {
			b.t.Errorf("helm went on before its hook %s was complete: %+v", moment, job.Status)
		}
	}
}

func (b *bakery) mustBeGone(what string, get func() error) {
	b.t.Helper()
	if err := get(); !apierrors.IsNotFound(err) {
		b.t.Errorf("%s: %v, want it gone", what, err)
	}
}
