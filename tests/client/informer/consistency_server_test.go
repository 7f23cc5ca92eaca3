package informer_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/internal/testwait"
)

// A real server's metadata is compared: of a copy that is right nothing is
// mended.
func TestRepairAgreesWithARealServer(t *testing.T) {
	client := start(t)
	f := informer.NewFactory(client, informer.Options{ConsistencyCheckInterval: time.Second})
	defer f.Shutdown()
	configMaps := informer.For[*corev1.ConfigMap](f, informer.ListOptions{Namespace: "default"})
	f.Start(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := f.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	testwait.Stable(t, "two rounds of comparison", func() (any, bool) {
		// Each write is an event, without which the version would move with the
		// next bookmark only.
		written := createConfigMap(t, client, "c"+time.Now().Format("150405.000000000"))
		if err := configMaps.WaitForResourceVersion(ctx, written.ResourceVersion); err != nil {
			t.Fatal(err)
		}
		rounds := configMaps.Stats().ConsistencyCheck.Rounds
		return rounds, rounds >= 2
	})
	if s := configMaps.Stats().ConsistencyCheck; s.Changed+s.Missing+s.Extra+s.Abandoned != 0 {
		t.Errorf("%+v", s)
	}
}
