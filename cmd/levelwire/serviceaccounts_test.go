package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
)

// TestProcessesHaveOnlyTheirRoles is TestComponentsHaveOnlyTheirRoles for components that
// are run by themselves, with the kubeconfigs of users to whom nothing is bound besides the
// default roles: with --use-service-account-credentials, each controller is a user of its own.
func TestProcessesHaveOnlyTheirRoles(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*testTimeout)
	defer cancel()
	dir := t.TempDir()
	log := filepath.Join(dir, "audit.log")
	_, stopServer := startInProcess(t, " is ready at ", append([]string{"serve", "--storage=memory", "--secure-port=0", "--data-dir", dir, "--log-level=error"}, auditFlags(t, log)...)...)
	var stops []func()
	start := func(user string, groups string, args ...string) {
		file := filepath.Join(dir, strings.ReplaceAll(user, ":", "-")+".kubeconfig")
		if made := invoke(ctx, "user", user, "--groups", groups, "--data-dir", dir, "--output", file); made.code != exitOK {
			t.Fatalf("%+v", made)
		}
		_, stop := startInProcess(t, "", append(args, "--kubeconfig", file, "--log-level=error")...)
		stops = append(stops, stop)
	}
	start("system:kube-controller-manager", "", "controllers", "--use-service-account-credentials")
	start("system:kube-scheduler", "", "scheduler")
	start("system:kube-proxy", "", "proxy")
	start("system:node:node-1", "system:nodes", "kubelet", "--node-name=node-1")
	start("system:node:node-2", "system:nodes", "kubelet", "--node-name=node-2")
	c, err := client.FromKubeconfig(filepath.Join(dir, "admin.kubeconfig"), client.Options{UserAgent: testAgent})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	if err := awaitReadyNodes(ctx, c, 2); err != nil {
		t.Fatal(err)
	}
	levelwiretest.ApplyFiles(t, c, "testdata/workloads.yaml")
	exercise(ctx, t, c)
	for _, stop := range stops {
		stop()
	}
	c.CloseIdleConnections()
	stopServer()
	checkAudit(t, log, componentUsers)
}

// newAccountClients returns clients whose tokens a user makes.
func newAccountClients(t *testing.T, s *levelwiretest.Server, issuer *rest.Config) *accountClients {
	t.Helper()
	c, err := client.New(issuer, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := &accountClients{config: s.Config(), issuer: c, agent: "test", log: slog.New(slog.DiscardHandler)}
	t.Cleanup(func() { a.close(); c.CloseIdleConnections() })
	return a
}

// whoami asks which user a client is.
func whoami(t *testing.T, c *client.Client) (authenticationv1.UserInfo, error) {
	t.Helper()
	review, err := client.For[*authenticationv1.SelfSubjectReview](c).Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

// TestAccountClients: the account is created, its token is used again, and a token that the
// server refuses, because the account was deleted, is replaced.
func TestAccountClients(t *testing.T) {
	t.Parallel()
	s := levelwiretest.Start(t)
	a := newAccountClients(t, s, s.UserConfig("system:kube-controller-manager"))
	c, err := a.client(t.Context(), "deployment-controller")
	if err != nil {
		t.Fatal(err)
	}
	before, err := whoami(t, c)
	if err != nil || before.Username != "system:serviceaccount:kube-system:deployment-controller" {
		t.Fatalf("%+v, %v", before, err)
	}
	again, err := whoami(t, c)
	if err != nil || again.Extra["authentication.kubernetes.io/credential-id"][0] != before.Extra["authentication.kubernetes.io/credential-id"][0] {
		t.Errorf("%+v, %v, want the token of %+v", again, err, before)
	}
	accounts := client.For[*corev1.ServiceAccount](s.Client(client.Options{})).Namespace(metav1.NamespaceSystem)
	if err := accounts.Delete(t.Context(), "deployment-controller", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The server looks tokens up in its cache, which a consistent list has waited for.
	if _, err := accounts.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if refused, err := whoami(t, c); !apierrors.IsUnauthorized(err) {
		t.Errorf("%+v, %v of an account that was deleted", refused, err)
	}
	if after, err := whoami(t, c); err != nil || after.Username != before.Username || after.UID == before.UID {
		t.Errorf("%+v, %v", after, err)
	}
}

// TestTokenIsReplacedInTime: a token is used for four fifths of its life.
func TestTokenIsReplacedInTime(t *testing.T) {
	t.Parallel()
	s := levelwiretest.Start(t)
	a := newAccountClients(t, s, s.Config())
	source := &tokenSource{account: "job-controller", issuer: a.issuer, context: t.Context, log: a.log}
	begin := time.Now()
	token, err := source.Token()
	if err != nil {
		t.Fatal(err)
	}
	const use, second = tokenLifetime * 4 / 5, time.Second // tokens are dated in seconds
	if token.Expiry.Before(begin.Add(use-second)) || token.Expiry.After(time.Now().Add(use+second)) {
		t.Errorf("a token of %s is replaced after %s", tokenLifetime, token.Expiry.Sub(begin))
	}
}

// TestWithoutRightsToTokens: what the user of the kubeconfig lacks is what a controller's
// requests fail with, and is logged.
func TestWithoutRightsToTokens(t *testing.T) {
	t.Parallel()
	s := levelwiretest.Start(t)
	a := newAccountClients(t, s, s.UserConfig("jane"))
	var logged strings.Builder
	a.log = slog.New(slog.NewTextHandler(&logged, nil))
	c, err := a.client(t.Context(), "deployment-controller")
	if err != nil {
		t.Fatal(err)
	}
	const want = `User \"jane\" cannot create resource \"serviceaccounts/token\"`
	for range 2 {
		if _, err := whoami(t, c); err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(want, `\`, "")) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if got := logged.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "the role system:kube-controller-manager") {
		t.Errorf("the log: %q", got)
	}
}
