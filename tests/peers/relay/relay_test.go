package relay

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/levelwire/levelwire/conformance"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/tests/peers/upstream"
)

// start returns a relay and what it is in front of.
func start(t *testing.T) (relay *levelwiretest.Server, behind *rest.Config) {
	t.Helper()
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
	relay = levelwiretest.Start(t, func(c *server.Config) { c.Relay = &server.Relay{Config: s.Config()} })
	return relay, s.Config()
}

// TestGuarantees holds a relay in front of the upstream libraries to what they promise.
func TestGuarantees(t *testing.T) {
	relay, _ := start(t)
	report, err := conformance.Run(t.Context(), relay.Config(), conformance.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := report.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	for _, r := range report.Results {
		if r.Verdict == conformance.Fail || r.Verdict == conformance.NotDecided {
			t.Errorf("%s: %s: %s", r.Name, r.Verdict, r.Reason)
		}
	}
}

// TestInformers of client-go see every object through the relay.
func TestInformers(t *testing.T) {
	relay, behind := start(t)
	through, direct := kubernetes.NewForConfigOrDie(relay.Config()), kubernetes.NewForConfigOrDie(behind)
	factory := informers.NewSharedInformerFactory(through, 0)
	lister := factory.Core().V1().ConfigMaps().Lister()
	synced := factory.Core().V1().ConfigMaps().Informer().HasSynced
	begin := time.Now()
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), synced) {
		t.Fatal("the informer has not synced")
	}
	t.Log("the first informer has synced after", time.Since(begin))
	for i := range 50 {
		writer := direct
		if i%2 == 0 {
			writer = through
		}
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("map-", i)}}
		if _, err := writer.CoreV1().ConfigMaps("default").Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Stable(t, "the informer has 50 objects", func() (any, bool) {
		list, err := lister.ConfigMaps("default").List(labels.Everything())
		return len(list), err == nil && len(list) == 50
	})
	for range 3 {
		begin = time.Now()
		if _, err := through.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Log("a consistent list took", time.Since(begin))
		if _, err := direct.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "other-"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
