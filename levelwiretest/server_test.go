package levelwiretest_test

import (
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServersAreApart(t *testing.T) {
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := client.For[*corev1.Namespace](levelwiretest.Start(t).Client(client.Options{}))
			if _, err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			list, err := api.List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 5 {
				t.Errorf("%d namespaces, %v; want the four of every cluster and mine", len(list.Items), err)
			}
		})
	}
}

func TestConfigurationCanBeChanged(t *testing.T) {
	s := levelwiretest.Start(t, func(c *server.Config) { c.Storage = server.Embedded })
	namespace, err := client.For[*corev1.Namespace](s.Client(client.Options{ContentType: client.Protobuf})).Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil || namespace.Status.Phase != corev1.NamespaceActive {
		t.Errorf("namespace default: %v, %v", namespace, err)
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		levelwiretest.Start(b)
	}
}
