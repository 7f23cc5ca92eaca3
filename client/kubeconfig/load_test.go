package kubeconfig

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// write writes a kubeconfig with a context of the same name as its server.
func write(t *testing.T, path, name, current string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	content := `{"apiVersion":"v1","kind":"Config","current-context":"` + current + `",
		"contexts":[{"name":"` + name + `","context":{"cluster":"` + name + `","user":"` + name + `","namespace":"ns-` + name + `"}}],
		"clusters":[{"name":"` + name + `","cluster":{"server":"https://` + name + `.example.com"}}],
		"users":[{"name":"` + name + `","user":{"token":"token-` + name + `"}}]}`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// environment gives the test a home directory and no other configuration.
func environment(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("POD_NAMESPACE", "")
	return home
}

func TestRulesOfKubectl(t *testing.T) {
	home := environment(t)
	dir := t.TempDir()
	one, two := write(t, filepath.Join(dir, "one"), "one", ""), write(t, filepath.Join(dir, "two"), "two", "two")
	explicit := write(t, filepath.Join(dir, "explicit"), "explicit", "explicit")
	pod := func() (*rest.Config, error) { return &rest.Config{Host: "https://pod.example.com"}, nil }
	t.Cleanup(func() { inCluster = rest.InClusterConfig })
	inCluster = pod
	list := strings.Join([]string{filepath.Join(dir, "missing"), one, two}, string(filepath.ListSeparator))

	for _, test := range []struct {
		name           string
		kubeconfig     string
		home           bool
		from           Options
		host           string
		namespace, err string
	}{
		{"nothing but the pod", "", false, Options{}, "https://pod.example.com", "default", ""},
		{"the pod with a namespace", "", false, Options{Namespace: "n"}, "https://pod.example.com", "n", ""},
		{"a context does not come from the pod", "", false, Options{Context: "one"}, "", "", "one"},
		{"the home directory", "", true, Options{}, "https://home.example.com", "ns-home", ""},
		{"KUBECONFIG before the home directory", two, true, Options{}, "https://two.example.com", "ns-two", ""},
		{"a merged list", list, true, Options{}, "https://two.example.com", "ns-two", ""},
		{"a context of the first file", list, true, Options{Context: "one"}, "https://one.example.com", "ns-one", ""},
		{"a context that does not exist", list, true, Options{Context: "three"}, "", "", "three"},
		{"a flag before all", list, true, Options{File: explicit}, "https://explicit.example.com", "ns-explicit", ""},
		{"a flag for a file that does not exist", list, true, Options{File: filepath.Join(dir, "missing")}, "", "", "missing"},
		{"a namespace", list, true, Options{Namespace: "n"}, "https://two.example.com", "n", ""},
		{"only files that do not exist", filepath.Join(dir, "missing"), true, Options{}, "https://pod.example.com", "default", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.kubeconfig)
			if path := filepath.Join(home, ".kube", "config"); test.home {
				write(t, path, "home", "home")
				t.Cleanup(func() { _ = os.Remove(path) })
			}
			config, namespace, err := Config(test.from)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want %q", err, test.err)
				}
				return
			}
			if err != nil || config.Host != test.host || namespace != test.namespace {
				t.Errorf("got %v, namespace %q, %v", config, namespace, err)
			}
		})
	}
}

func TestNothingToLoad(t *testing.T) {
	home := environment(t)
	if _, _, err := Config(Options{}); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), home) {
		t.Errorf("got %v", err)
	}
}

// Errors name what is wrong in the files, and not what clientcmd would try instead.
func TestMistakesInFiles(t *testing.T) {
	environment(t)
	dir := t.TempDir()
	text := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://c.example.com"}}],
		"contexts":[{"name":"two","context":{"cluster":"c","user":"missing"}},{"name":"broken","context":{"cluster":"nix"}}]}`
	path := filepath.Join(dir, "config")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte(`{"apiVersion":"v1","kind":"Config"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		kubeconfig string
		from       Options
		want       string
	}{
		{"", Options{File: empty}, "no current-context: set one, or name a file that has contexts, this one has none"},
		{empty, Options{Context: "two"}, "context two does not exist: name a file that has contexts, this one has none"},
		{"", Options{File: path}, "no current-context: set one, or choose one of the contexts (broken, two)"},
		{path, Options{}, "no current-context: set one, or choose one of the contexts (broken, two)"},
		{path, Options{Context: "three"}, "context three does not exist: choose one of the contexts (broken, two)"},
		{path, Options{Context: "broken"}, "context broken: cluster nix does not exist"},
		{path, Options{Context: "two"}, "context two: user missing does not exist"},
		{filepath.Join(dir, "a") + string(filepath.ListSeparator) + filepath.Join(dir, "b"), Options{}, "write " + filepath.Join(dir, "a") + " or " + filepath.Join(dir, "b")},
	} {
		t.Setenv("KUBECONFIG", test.kubeconfig)
		if _, _, err := Config(test.from); err == nil || !strings.HasSuffix(err.Error(), test.want) || strings.Contains(err.Error(), "KUBERNETES_MASTER") {
			t.Errorf("%+v: got %v, want %s", test.from, err, test.want)
		}
	}
}

// Who the program says that it is replaces all of what the context says: a user must not get the
// groups of another one, and a program that asks for fewer rights must not keep its own.
func TestImpersonation(t *testing.T) {
	environment(t)
	t.Cleanup(func() { inCluster = rest.InClusterConfig })
	inCluster = func() (*rest.Config, error) { return &rest.Config{Host: "https://pod.example.com"}, nil }
	path := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://c.example.com"}}],
		"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"users":[{"name":"u","user":{"token":"t","as":"root","as-uid":"1","as-groups":["admins"],"as-user-extra":{"k":["v"]}}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	bob := rest.ImpersonationConfig{UserName: "bob"}
	asFile := rest.ImpersonationConfig{UserName: "root", UID: "1", Groups: []string{"admins"}, Extra: map[string][]string{"k": {"v"}}}
	for _, test := range []struct {
		from Options
		want rest.ImpersonationConfig
	}{
		{Options{File: path}, asFile},
		{Options{File: path, Impersonate: bob}, bob},
		{Options{}, rest.ImpersonationConfig{}},
		{Options{Impersonate: bob}, bob},
	} {
		config, _, err := Config(test.from)
		if err != nil || !reflect.DeepEqual(config.Impersonate, test.want) {
			t.Errorf("%+v: got %+v, %v", test.from, config, err)
		}
	}
	for _, file := range []string{"", path} {
		for _, without := range []rest.ImpersonationConfig{{Groups: []string{"readers"}}, {UID: "2"}, {Extra: map[string][]string{"k": {"w"}}}} {
			if config, _, err := Config(Options{File: file, Impersonate: without}); err == nil || !strings.Contains(err.Error(), "no UserName") {
				t.Errorf("%q, %+v: got %+v, %v", file, without, config, err)
			}
		}
	}
}

func TestFlags(t *testing.T) {
	environment(t)
	path := write(t, filepath.Join(t.TempDir(), "config"), "one", "")
	from := Options{}
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	from.AddFlags(flags)
	if err := flags.Parse([]string{"-kubeconfig", path, "-context=one", "-namespace=n", "-as=alice"}); err != nil {
		t.Fatal(err)
	}
	config, namespace, err := Config(from)
	if err != nil || config.BearerToken != "token-one" || namespace != "n" || config.Impersonate.UserName != "alice" {
		t.Errorf("got %+v, %q, %v", config, namespace, err)
	}
}

// controller-runtime's config package adds -kubeconfig to flag.CommandLine when it is imported.
func TestFlagOfAnotherPackage(t *testing.T) {
	environment(t)
	directory := t.TempDir()
	theirs, own := write(t, filepath.Join(directory, "theirs"), "theirs", "theirs"), write(t, filepath.Join(directory, "own"), "own", "own")
	for _, test := range []struct{ argument, file, want string }{
		{"-kubeconfig=" + theirs, "", "token-theirs"}, {"-kubeconfig=" + theirs, own, "token-theirs"}, {"-context=own", own, "token-own"},
	} {
		flags := flag.NewFlagSet("test", flag.ContinueOnError)
		flags.String("kubeconfig", "", "another package's")
		from := Options{File: test.file}
		from.AddFlags(flags)
		if err := flags.Parse([]string{test.argument}); err != nil {
			t.Fatal(err)
		}
		config, _, err := Config(from)
		if err != nil || config.BearerToken != test.want {
			t.Errorf("%+v: got %+v, %v", test, config, err)
		}
	}
}
