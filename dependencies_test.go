package levelwire_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// unlinked are packages that the command must not link, not even through
// another package: they cost compile time and size, and nothing uses them.
// docs/contributors/build-size.md says where the rest goes.
var unlinked = []struct{ path, because string }{
	{"k8s.io/client-go/applyconfigurations/...", "54 packages and a schema that is parsed for 50 ms; see server/internal/resource/mergestrategy"},
	{"k8s.io/client-go/discovery/...", "nothing of ours asks a server what it has"},
	{"k8s.io/client-go/kubernetes", "package client is our own client"},
	{"k8s.io/client-go/kubernetes/typed/...", "package client is our own client"},
	{"k8s.io/client-go/informers/...", "it is the peer Levelwire is measured against"},
	{"k8s.io/client-go/tools/cache/...", "it is the peer Levelwire is measured against"},
	{"k8s.io/client-go/plugin/pkg/client/auth", "credentials come from files, tokens and exec plugins"},
	{"k8s.io/apiserver/pkg/admission/...", "it is the peer Levelwire is measured against"},
	{"k8s.io/apiserver/pkg/endpoints/handlers/...", "it is the peer Levelwire is measured against"},
	{"k8s.io/apiserver/pkg/registry/...", "it is the peer Levelwire is measured against"},
	{"k8s.io/apiserver/pkg/storage/...", "it is the peer Levelwire is measured against"},
	{"k8s.io/apiextensions-apiserver/pkg/apiserver", "custom resources are served by our own code"},
	{"k8s.io/apiextensions-apiserver/pkg/client/...", "package client is our own client"},
	{"k8s.io/kube-openapi/pkg/builder/...", "package openapi builds the documents"},
	{"k8s.io/kube-openapi/pkg/builder3", "package openapi builds the documents"},
	{"k8s.io/kube-openapi/pkg/handler3/...", "package apiserver serves the documents"},
	{"github.com/emicklei/go-restful/...", "routes are our own"},
	{"go.etcd.io/etcd/etcdctl/...", "the server embeds etcd's member, not its commands"},
	{"go.etcd.io/etcd/etcdutl/v3/etcdutl/...", "only the package that restores snapshots is used"},
	{"go.etcd.io/etcd/server/v3/etcdmain/...", "the server embeds etcd's member, not its commands"},
	{"go.etcd.io/etcd/server/v3/proxy/grpcproxy", "the server embeds etcd's member, not its proxies"},
	{"testing/...", "it belongs to tests"},
}

// heavyForClients are packages that no program links because of client/informer: it is
// what a minimal program imports. docs/contributors/build-size.md has the numbers.
var heavyForClients = []struct{ path, because string }{
	{"k8s.io/client-go/kubernetes/...", "its scheme links all API groups; see client/scheme"},
	{"k8s.io/api/...", "a program links the API groups whose types it uses"},
	{"k8s.io/client-go/applyconfigurations/...", "patches and applies need no generated code"},
	{"k8s.io/client-go/discovery/...", "it reads OpenAPI documents; see client/discovery"},
	{"k8s.io/client-go/plugin/pkg/client/auth", "programs that use a provider import it"},
	{"k8s.io/client-go/plugin/pkg/client/auth/oidc", "programs that use a provider import it"},
	{"github.com/google/gnostic-models/...", "it is for OpenAPI documents"},
	{"github.com/prometheus/...", "only client/metrics needs it"},
	{"go.opentelemetry.io/...", "only client/tracing needs it"},
	{"google.golang.org/protobuf/...", "the types of Kubernetes have generated code of their own"},
	{"text/template", "it looks methods up by name, so the linker keeps every exported method"},
	{"testing/...", "it belongs to tests"},
}

// TestCommandLinksOnlyWhatItUses asks the go command what is linked.
func TestCommandLinksOnlyWhatItUses(t *testing.T) {
	for _, path := range linkedBy(t, "./cmd/levelwire") {
		for _, rule := range unlinked {
			if covers(rule.path, path) && !isExempt(path) {
				t.Errorf("cmd/levelwire links %s: %s", path, rule.because)
			}
		}
	}
}

// TestClientProgramsStaySmall asks the same of the package that most programs start
// with.
func TestClientProgramsStaySmall(t *testing.T) {
	for _, path := range linkedBy(t, "./client/informer") {
		for _, rule := range heavyForClients {
			if covers(rule.path, path) {
				t.Errorf("client/informer links %s: %s", path, rule.because)
			}
		}
	}
}

// TestModulesReplaceNothing: a module that others import must build without the replacements of its go.mod,
// which count in a main module only. Nobody imports the judge.
func TestModulesReplaceNothing(t *testing.T) {
	const judge = "tests/differential/judge/go.mod"
	seen := 0
	for _, pattern := range []string{"go.mod", "*/go.mod", "*/*/go.mod", "*/*/*/go.mod"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(file, "bin/") || !bytes.Contains(content, []byte("module github.com/levelwire/")) {
				continue // it was fetched
			}
			seen++
			if replaces := bytes.Contains(content, []byte("\nreplace ")); replaces != (file == judge) {
				t.Errorf("%s replaces modules: %t; CONTRIBUTING.md says which do", file, replaces)
			}
		}
	}
	if seen < 7 {
		t.Errorf("only %d modules were found", seen)
	}
}

// linkedBy lists what is linked with a package.
func linkedBy(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	linked := strings.Fields(string(out))
	if len(linked) < 100 {
		t.Fatalf("only %d packages are linked", len(linked))
	}
	return linked
}
