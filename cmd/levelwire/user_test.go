package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
)

// TestUser: the kubeconfig of a further user works with the server that runs.
func TestUser(t *testing.T) {
	up := startUp(t, "--nodes=0")
	dir := filepath.Dir(up.kubeconfig)
	path := filepath.Join(t.TempDir(), "jane file")
	for range 2 { // the second replaces the first
		made := invoke(t.Context(), "user", "jane:doe", "--groups", "dev,oncall", "--data-dir", dir, "--output", path)
		if made.code != exitOK || !strings.Contains(made.stdout, "jane:doe of dev, oncall, until ") || !strings.Contains(made.stdout, "export KUBECONFIG='"+path+"'") {
			t.Fatalf("%+v", made)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: it has a private key", info, err)
	}
	user := whoamiBy(t, path)
	if user.Username != "jane:doe" || !slices.Equal(user.Groups, []string{"dev", "oncall", "system:authenticated"}) {
		t.Errorf("%+v", user)
	}
	printed := invoke(t.Context(), "user", "robot", "--data-dir", dir, "--output", "-", "--server", "https://levelwire.example:6443")
	config, err := clientcmd.Load([]byte(printed.stdout))
	if err != nil || config.Clusters["levelwire"].Server != "https://levelwire.example:6443" || config.AuthInfos["robot"] == nil {
		t.Errorf("%v, %+v", err, printed)
	}
	taken := invoke(t.Context(), "user", "robot", "--data-dir", dir, "--output", path)
	if taken.code != exitFailed || !strings.Contains(taken.stderr, "is not a kubeconfig of robot") {
		t.Errorf("%+v", taken)
	}
}

// whoamiBy asks a server which user it takes the holder of a kubeconfig for.
func whoamiBy(t *testing.T, kubeconfig string) authenticationv1.UserInfo {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	review, err := client.For[*authenticationv1.SelfSubjectReview](c).Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo
}

func TestUserMistakes(t *testing.T) {
	empty := t.TempDir()
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no name":          {nil, exitUsage, "0 arguments instead of one, the NAME"},
		"two names":        {[]string{"a", "b"}, exitUsage, "2 arguments instead of one"},
		"empty name":       {[]string{""}, exitUsage, "the name is empty"},
		"comma":            {[]string{"a,b"}, exitUsage, "has a comma: make one kubeconfig for each user"},
		"space":            {[]string{" a"}, exitUsage, "begins or ends with a space"},
		"new line":         {[]string{"a\nb"}, exitUsage, "control character"},
		"anonymous":        {[]string{"system:anonymous"}, exitUsage, "without credentials"},
		"empty group":      {[]string{"a", "--groups", "b,,c"}, exitUsage, "--groups: the group is empty"},
		"no file name":     {[]string{"a/b"}, exitUsage, "say by --output"},
		"lifetime":         {[]string{"a", "--lifetime=-1h"}, exitUsage, "not in the future"},
		"no data":          {[]string{"a", "--data-dir", empty}, exitFailed, "no server has been started there"},
		"no such data":     {[]string{"a", "--data-dir", filepath.Join(empty, "none")}, exitFailed, "start `levelwire up`"},
		"unauthenticated":  {[]string{"a", "--groups", "system:unauthenticated"}, exitUsage, "without credentials"},
		"an unknown flag":  {[]string{"a", "--group", "b"}, exitUsage, "unknown flag"},
		"a strange length": {[]string{"a", "--lifetime", "year"}, exitUsage, "invalid argument"},
	} {
		got := invoke(t.Context(), append([]string{"user"}, test.args...)...)
		if got.code != test.code || !strings.Contains(got.stderr, test.says) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: %+v, want %d, %q", name, got, test.code, test.says)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("%v, %v: a mistake has left something", left, err)
	}
}
