package levelwire_test

import (
	"os/exec"
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
	{"go.etcd.io/etcd/etcdutl/...", "the server embeds etcd's member, not its commands"},
	{"go.etcd.io/etcd/server/v3/etcdmain/...", "the server embeds etcd's member, not its commands"},
	{"go.etcd.io/etcd/server/v3/proxy/grpcproxy", "the server embeds etcd's member, not its proxies"},
	{"testing/...", "it belongs to tests"},
}

// TestCommandLinksOnlyWhatItUses asks the go command what is linked.
func TestCommandLinksOnlyWhatItUses(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/levelwire").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	linked := strings.Fields(string(out))
	if len(linked) < 100 {
		t.Fatalf("only %d packages are linked", len(linked))
	}
	for _, path := range linked {
		for _, rule := range unlinked {
			if covers(rule.path, path) {
				t.Errorf("cmd/levelwire links %s: %s", path, rule.because)
			}
		}
	}
}
