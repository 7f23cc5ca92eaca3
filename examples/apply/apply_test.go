package main

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const want = `release applies web:1 and 3 replicas: web:1, 3 replicas
autoscaler applies 5 replicas: refused, .spec.replicas is release's
autoscaler forces 5 replicas: web:1, 5 replicas
release applies web:2 without replicas: web:2, 5 replicas
release applies 5 replicas, too; autoscaler applies 6: refused true
autoscaler applies nothing: web:2, 5 replicas
release applies no replicas either: web:2, 1 replicas, the server's default
`

func TestApply(t *testing.T) {
	c := levelwiretest.NewClient(t, client.Options{})
	var out strings.Builder
	for range 2 { // the second begins anew
		out.Reset()
		if err := run(t.Context(), client.For[*appsv1.Deployment](c).Namespace("default"), &out); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("got\n%s\nwant\n%s", out.String(), want)
		}
	}
}
