package verify

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/levelwire/levelwire/conformance"
	"github.com/levelwire/levelwire/tests/peers/upstream"
)

var writeDocs = flag.String("write-docs", "", "write the verdict to this file")

func TestUpstreamServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	etcd, err := upstream.StartEtcd(ctx, upstream.EtcdOptions{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	s, err := upstream.Start(context.Background(), upstream.Options{Etcd: etcd.Endpoint(), CertDir: t.TempDir(), Protobuf: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	report, err := conformance.Run(ctx, s.Config(), conformance.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := report.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	if *writeDocs != "" {
		if err := os.WriteFile(*writeDocs, []byte(document(report)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range report.Results {
		_, differs := differences[r.Name]
		switch {
		case r.Verdict == conformance.NotDecided:
			t.Errorf("%s is not decided: %s", r.Name, r.Reason)
		case r.Verdict == conformance.Fail && !differs:
			t.Errorf("%s fails upstream, and differences does not say why", r.Name)
		case r.Verdict == conformance.Pass && differs:
			t.Errorf("%s passes upstream: the difference written down is gone", r.Name)
		}
	}
}

// differences are the guarantees that a server built from the upstream
// libraries does not give, with the reason. There are none at present; what
// differs within a guarantee is in docs/users/verify.md.
var differences = map[string]string{}

const preface = `# The same guarantees on a server built from the upstream libraries

What levelwire verify says of an API server made of k8s.io/apiserver's generic registry, etcd3 storage and watch cache (the
package tests/peers/upstream: Pods, ConfigMaps, Namespaces and a few others, no admission). [verify.md](verify.md) says what each
guarantee is. This file is generated, in the folder tests:

    go test ./verify -write-docs ../../../docs/contributors/verify-upstream.md

Where both servers keep a guarantee, they may still differ within it. These differences of ours are deliberate:

| what | upstream | ours | why |
|-|-|-|-|
| a malformed resourceVersion on GET or WATCH | 500 InternalError | 400 BadRequest, as on LIST | it is the client's mistake |
| creating an object that carries a resourceVersion | 500 InternalError | 400 BadRequest | the same |
| watch from before a server's restart | 410 unless from the very last version | goes on from the store's history, or from what has changed since | clients need not list again |
| CBOR, sharded lists and watches | behind feature gates, off here | on | clients ask for them |

`

// document is the verdict as Markdown.
func document(report *conformance.Report) string {
	var b strings.Builder
	b.WriteString(preface)
	fmt.Fprintf(&b, "%d pass, %d fail, %d not decided, %d skipped.\n\n| guarantee | verdict | remark |\n|-|-|-|\n",
		report.Count(conformance.Pass), report.Count(conformance.Fail), report.Count(conformance.NotDecided), report.Count(conformance.Skip))
	for _, r := range report.Results {
		remark := r.Reason
		if why, ok := differences[r.Name]; ok {
			remark = why
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Name, r.Verdict, strings.ReplaceAll(remark, "|", "\\|"))
	}
	return b.String()
}
