package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/components/proxy"
	"github.com/levelwire/levelwire/server"
)

// mustFail checks for an exit code and for one line that names what is wrong.
func mustFail(t *testing.T, got result, code int, names string) {
	t.Helper()
	if got.code != code {
		t.Errorf("exit code %d, want %d", got.code, code)
	}
	if got.stdout != "" {
		t.Errorf("stdout is not for errors: %q", got.stdout)
	}
	line, rest, _ := strings.Cut(got.stderr, "\n")
	if rest != "" || !strings.HasPrefix(line, "levelwire: ") || !strings.Contains(line, names) {
		t.Errorf("stderr %q is not one line that names %s", got.stderr, names)
	}
}

// TestUsageErrors: what cannot be understood names the flag and exits with 2.
func TestUsageErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for command, names := range map[string]string{
		"frobnicate":                                  `"frobnicate"`,
		"frobnicate --help":                           `"frobnicate"`,
		"--help frobnicate":                           `"frobnicate"`,
		"help frobnicate":                             `"frobnicate"`,
		"serve now":                                   `"now"`,
		"serve --nope":                                "--nope",
		"serve --secure-port=https":                   "--secure-port",
		"serve --secure-port=-1":                      "--secure-port",
		"serve --secure-port=70000":                   "--secure-port",
		"serve --bind-address=here":                   "--bind-address",
		"serve --data-dir=":                           "--data-dir",
		"serve --storage=cloud":                       "--storage",
		"serve --storage=etcd":                        "--etcd-servers",
		"serve --etcd-servers=127.0.0.1:2379":         "--etcd-servers",
		"serve --etcd-certfile=x":                     "--etcd-keyfile",
		"serve --etcd-cafile=no-such-file":            "--etcd-cafile",
		"serve --compaction-interval=5":               "--compaction-interval",
		"serve --compaction-retention=-1s":            "--compaction-retention",
		"serve --compaction-revisions=all":            "--compaction-revisions",
		"serve --compaction-bytes=1":                  "--compaction-bytes",
		"serve --compaction-bytes=1GB":                "--compaction-bytes",
		"serve --compaction-bytes=9Ei":                "--compaction-bytes",
		"serve --compaction-bytes=0.5":                "--compaction-bytes",
		"serve --tombstone-limit=-1":                  "--tombstone-limit",
		"serve --tombstone-bytes=-1Mi":                "--tombstone-bytes",
		"serve --tombstone-bytes=many":                "--tombstone-bytes",
		"serve --tombstone-age=-1h":                   "--tombstone-age",
		"serve --tombstone-age=24":                    "--tombstone-age",
		"serve --coalesced-history=maybe":             "--coalesced-history",
		"serve --shutdown-delay-duration=-1s":         "--shutdown-delay-duration",
		"serve --self-check-interval=soon":            "--self-check-interval",
		"serve --service-cidr=10.96.0.0":              "--service-cidr",
		"serve --service-cidr=10.96.0.0/31":           "--service-cidr",
		"serve --log-level=loud":                      "--log-level",
		"serve --log-format=xml":                      "--log-format",
		"up --nodes=-1":                               "--nodes",
		"up --nodes=5001":                             "--nodes 5001: it is 0 to 5000",
		"up --nodes=many":                             "--nodes",
		"controllers --log-level=loud":                "--log-level",
		"scheduler --kubeconfig":                      "--kubeconfig",
		"kubelet --pod-cidr=10.244":                   "--pod-cidr",
		"kubelet --start-after=fast":                  "--start-after",
		"proxy everything":                            `"everything"`,
		"version --short":                             "--short",
		"record x.lwr --namespace=":                   "--namespace",
		"record x.lwr --namespace=shop,":              "--namespace",
		"record x.lwr --resources=":                   "--resources",
		"up --etcd-servers=http://a --storage=memory": "--etcd-servers",
	} {
		t.Run(command, func(t *testing.T) {
			got := invoke(t.Context(), strings.Fields(command)...)
			mustFail(t, got, exitUsage, names)
			if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
				t.Errorf("something was written: %v, %v", entries, err)
			}
		})
	}
}

// TestFormerNameOfCoalescedHistory: scripts may still have it for one release.
func TestFormerNameOfCoalescedHistory(t *testing.T) {
	for _, test := range []struct {
		flags string
		exact bool
		warns bool
	}{
		{"", false, false},
		{"--coalesced-history=false", true, false},
		{"--compacted-history=false", true, true},
		{"--compacted-history=true", false, true},
		{"--compacted-history", false, true},
	} {
		var f serverFlags
		var got server.Config
		cmd := &cobra.Command{Use: "serve", RunE: func(cmd *cobra.Command, _ []string) (err error) {
			got, err = f.complete(cmd)
			return err
		}}
		f.register(cmd)
		var warnings strings.Builder
		cmd.SetErr(&warnings)
		cmd.SetArgs(strings.Fields(test.flags))
		if err := cmd.Execute(); err != nil {
			t.Errorf("%s: %v", test.flags, err)
		}
		if got.ExactHistory != test.exact || strings.Contains(warnings.String(), "use --coalesced-history") != test.warns {
			t.Errorf("%q: exact history %v, and the log says %q", test.flags, got.ExactHistory, warnings.String())
		}
		if help := cmd.UsageString(); strings.Contains(help, "compacted-history") {
			t.Errorf("the help names it: %s", help)
		}
	}
}

// TestFlagsOfRelayAndServe: a relay has the flags of a server about what both do, with the same
// meaning.
func TestFlagsOfRelayAndServe(t *testing.T) {
	args := []string{
		"--audit-policy-file=policy.yaml", "--audit-log-path=audit.log", "--audit-log-batch-throttle-enable", "--audit-log-batch-throttle-qps=7", "--tracing-config-file=tracing.yaml",
		"--http2-server=net/http", "--coalesced-history=false", "--tombstone-limit=5", "--tombstone-bytes=1Ki", "--tombstone-age=1m", "--compress-objects",
	}
	var serve serverFlags
	var relay relayFlags
	for _, of := range []struct {
		register func(*cobra.Command)
		complete func(*cobra.Command) (server.Config, error)
	}{{serve.register, serve.complete}, {relay.register, relay.complete}} {
		var got server.Config
		cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) (err error) {
			got, err = of.complete(cmd)
			return err
		}}
		of.register(cmd)
		cmd.SetArgs(args)
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		if got.Audit.PolicyFile != "policy.yaml" || got.Audit.LogPath != "audit.log" || got.Audit.LogDelivery.BatchesPerSecond != 7 || got.TracingConfigFile != "tracing.yaml" ||
			got.HTTP2Server != server.HTTP2NetHTTP || !got.ExactHistory || got.TombstoneLimit != 5 || got.TombstoneBytes != 1024 || got.TombstoneAge != time.Minute || !got.CompressObjects {
			t.Errorf("%+v", got)
		}
	}
}

// TestFlagsInTheManifestOfRelays: the Deployment for operators starts a relay.
func TestFlagsInTheManifestOfRelays(t *testing.T) {
	file, err := os.Open("../../docs/operators/relay/relay.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var deployment appsv1.Deployment
	if err := yaml.NewYAMLOrJSONDecoder(file, 4096).Decode(&deployment); err != nil {
		t.Fatal(err)
	}
	args := deployment.Spec.Template.Spec.Containers[0].Args
	cmd, rest, err := newRoot().Find(args)
	if err != nil || cmd.Name() != "relay" {
		t.Fatalf("%v: %v", args, err)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%v: %v", args, err)
	}
}

// TestFailures: what is wrong with the machine exits with 1.
func TestFailures(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Chdir(t.TempDir())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "broken"} {
		if err := os.WriteFile(name, []byte("no kubeconfig: ["), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for command, names := range map[string]string{
		"serve --secure-port=" + port:                    listener.Addr().String() + " is in use",
		"up --secure-port=" + port:                       listener.Addr().String() + " is in use",
		"serve --secure-port=0 --data-dir=file":          "--data-dir",
		"serve --secure-port=0 --bind-address=192.0.2.1": "--bind-address",
		"controllers":                                 "--kubeconfig",
		"scheduler --kubeconfig=none":                 "none",
		"kubelet --kubeconfig=broken":                 "broken",
		"proxy --kubeconfig=broken --log-level=debug": "broken",
	} {
		t.Run(command, func(t *testing.T) {
			mustFail(t, invoke(t.Context(), strings.Fields(command)...), exitFailed, names)
		})
	}
}

// TestHelp: every command and flag says what it is for, and --help of a
// command that runs something shows how.
func TestHelp(t *testing.T) {
	root := newRoot()
	overview := invoke(t.Context(), "--help")
	if bare := invoke(t.Context()); bare != overview || bare.code != exitOK {
		t.Errorf("levelwire without arguments: %+v", bare)
	}
	if help := invoke(t.Context(), "help"); help != overview {
		t.Errorf("levelwire help: %+v", help)
	}
	for _, args := range [][]string{{"completion", "bash"}, {cobra.ShellCompRequestCmd, "serv"}} {
		if got := invoke(t.Context(), args...); got.code != exitOK || !strings.Contains(got.stdout, "serve") && !strings.Contains(got.stdout, cobra.ShellCompRequestCmd) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	commands := slices.DeleteFunc(root.Commands(), func(c *cobra.Command) bool { return !c.IsAvailableCommand() || c.Name() == "help" })
	if len(commands) < 7 {
		t.Fatalf("%d commands", len(commands))
	}
	for _, c := range commands {
		t.Run(c.Name(), func(t *testing.T) {
			if !strings.Contains(overview.stdout, c.Name()+" ") || !strings.Contains(overview.stdout, c.Short) {
				t.Error("it is not in the overview")
			}
			got := invoke(t.Context(), c.Name(), "--help")
			if got.code != exitOK || got.stderr != "" {
				t.Fatalf("exit code %d, stderr %q", got.code, got.stderr)
			}
			if c.HasAvailableLocalFlags() && (len(c.Long) < 2*len(c.Short) || !strings.Contains(got.stdout, "levelwire "+c.Name()+"\n") && c.Example == "") {
				t.Errorf("it neither explains itself nor gives an example:\n%s", got.stdout)
			}
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if f.Hidden {
					return
				}
				if len(f.Usage) < 10 || !strings.Contains(got.stdout, "--"+f.Name) {
					t.Errorf("--%s says only %q", f.Name, f.Usage)
				}
			})
			for line := range strings.Lines(c.Long) {
				if len(line) > 81 {
					t.Errorf("wider than a terminal: %q", line)
				}
			}
		})
	}
}

// TestExamplesParse: the command lines that --help shows are accepted.
func TestExamplesParse(t *testing.T) {
	for _, c := range newRoot().Commands() {
		for line := range strings.Lines(c.Example) {
			words := strings.Fields(line)
			if len(words) > 0 && (words[0] == "kubectl" || words[0] == "curl") {
				continue // what follows the command
			}
			if len(words) < 2 || words[0] != "levelwire" || words[1] != c.Name() {
				t.Errorf("%s: example %q is of another command", c.Name(), line)
				continue
			}
			if err := c.ParseFlags(words[2:]); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	cli.Release = "v1.2.3"
	defer func() { cli.Release = "" }()
	if got := invoke(t.Context(), "version"); got != (result{exitOK, "levelwire v1.2.3\n", ""}) {
		t.Errorf("%+v", got)
	}
	cli.Release = ""
	if got := invoke(t.Context(), "version"); got.code != exitOK || len(strings.Fields(got.stdout)) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestFindKubeconfig(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first, second := write("first"), write("second")
	find := func(flag, env string) string {
		t.Setenv("KUBECONFIG", env)
		path, err := cli.FindKubeconfig(flag)
		if err != nil {
			return "error: " + err.Error()
		}
		return path
	}
	if got := find("", ""); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, "--kubeconfig") {
		t.Errorf("without any: %s", got)
	}
	beside := filepath.Join("levelwire-data", "admin.kubeconfig")
	write(beside)
	for _, test := range []struct{ flag, env, want string }{
		{"", "", beside},
		{"", first, first},
		{second, first, second},
		{"", first + string(filepath.ListSeparator) + second, first},
	} {
		if got := find(test.flag, test.env); got != test.want {
			t.Errorf("--kubeconfig=%s KUBECONFIG=%s: %s, want %s", test.flag, test.env, got, test.want)
		}
	}
	for from, got := range map[string]string{"--kubeconfig": find("none", first), "KUBECONFIG": find("", "none")} {
		if !strings.HasPrefix(got, "error: "+from) {
			t.Errorf("a file that is not there: %q does not name %s", got, from)
		}
	}
}

// TestShellQuote asks a shell.
func TestShellQuote(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh to ask")
	}
	for _, path := range []string{"/plain/path", "/with space", "/it's", `/$HOME/"quoted"`, "/semi;colon&more", "/star*"} {
		out, err := exec.Command(shell, "-c", "printf %s "+cli.ShellQuote(path)).Output()
		if err != nil || string(out) != path {
			t.Errorf("%s is quoted as %s, which is %s (%v)", path, cli.ShellQuote(path), out, err)
		}
	}
	if got := cli.ShellQuote("/plain/path"); got != "/plain/path" {
		t.Errorf("a plain path became %s", got)
	}
}

// TestRulePrinter: a line for what appears or changes, one for what goes, and
// none for what stays.
func TestRulePrinter(t *testing.T) {
	var lines []string
	p := newRulePrinter(func(line string) { lines = append(lines, line) })
	table := proxy.NewTable()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.ServiceSpec{
		ClusterIPs: []string{"10.96.0.7"}, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}},
	}}
	number := int32(8080)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		Ports:      []discoveryv1.EndpointPort{{Port: &number}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.2"}}},
	}
	for _, step := range []struct {
		change func()
		want   []string
	}{
		{func() { table.SetService(service) }, []string{"ns/web 10.96.0.7:80/TCP -> no endpoints"}},
		{func() { table.SetSlice(slice) }, []string{"ns/web 10.96.0.7:80/TCP -> 10.244.0.2:8080"}},
		{func() { table.SetSlice(slice) }, nil},
		{func() { table.RemoveService(typesName(service)) }, []string{"gone: ns/web 10.96.0.7:80/TCP -> 10.244.0.2:8080"}},
	} {
		lines = nil
		step.change()
		p.show(table)
		if !slices.Equal(lines, step.want) {
			t.Errorf("printed %q, want %q", lines, step.want)
		}
	}
}

// TestRulePrinterWaitsForNone: a change does not wait until the lines of the one before are printed, which are shown together.
func TestRulePrinterWaitsForNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := proxy.NewTable()
		var lines []string
		reads := make(chan struct{})
		p := newRulePrinter(func(line string) {
			reads <- struct{}{}
			lines = append(lines, line)
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.run(ctx, table)
		set := func(port int32) {
			_ = table.SetService(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.ServiceSpec{
				ClusterIPs: []string{"10.96.0.7"}, Ports: []corev1.ServicePort{{Port: port, Protocol: corev1.ProtocolTCP}},
			}})
			p.changed(table)
		}
		set(1)
		synctest.Wait() // it holds the first line
		for port := range int32(100) {
			set(port + 2)
		}
		for range 3 {
			<-reads
		}
		synctest.Wait()
		want := []string{"ns/web 10.96.0.7:1/TCP -> no endpoints", "ns/web 10.96.0.7:101/TCP -> no endpoints", "gone: ns/web 10.96.0.7:1/TCP -> no endpoints"}
		if !slices.Equal(lines, want) {
			t.Errorf("printed %q, want %q", lines, want)
		}
	})
}

// TestLogging: the level and the format are what the flags say.
func TestLogging(t *testing.T) {
	for _, test := range []struct {
		level, format string
		lines         int
	}{{"debug", "text", 3}, {"info", "json", 2}, {"warn", "json", 1}, {"error", "text", 0}} {
		var out bytes.Buffer
		log, err := (&cli.Logging{Level: test.level, Format: test.format}).Logger(&out)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("d")
		log.Info("i")
		log.Warn("w")
		lines := bytes.Count(out.Bytes(), []byte("\n"))
		if lines != test.lines {
			t.Errorf("%s: %d lines, want %d", test.level, lines, test.lines)
		}
		if isJSON := json.Valid(bytes.SplitN(out.Bytes(), []byte("\n"), 2)[0]); isJSON != (test.format == "json") && lines > 0 {
			t.Errorf("--log-format=%s: %s", test.format, out.String())
		}
	}
}

// TestEndedComponent: a part of `up` that ends by itself is named.
func TestEndedComponent(t *testing.T) {
	c := component{name: "some", run: func(context.Context) error { return nil }}
	if err := c.keepRunning(t.Context()); err == nil || !strings.Contains(err.Error(), "some: ") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.run = func(context.Context) error { return fmt.Errorf("interrupted") }
	if err := c.keepRunning(ctx); err != nil {
		t.Errorf("asked to end: %v", err)
	}
}
