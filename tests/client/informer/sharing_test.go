package informer_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/levelwiretest"
)

// TestTransformsChangeNobodyElse: objects have memory in common, but not when a
// transform might change one of them in place.
func TestTransformsChangeNobodyElse(t *testing.T) {
	for _, contentType := range []client.ContentType{client.JSON, client.Protobuf} {
		c := levelwiretest.Start(t).Client(client.Options{ContentType: contentType})
		const many = 20
		for n := range many {
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprint("equal-", n), Labels: map[string]string{"equal": "yes", "app": "web"},
			}}
			if _, err := client.For[*corev1.ConfigMap](c).Namespace("default").Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		factory := informer.NewFactory(c, informer.Options{})
		defer factory.Shutdown()
		i := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{LabelSelector: "equal=yes"})
		if err := i.SetTransform(func(obj *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			obj.Labels["mine"] = obj.Name
			return obj, nil
		}); err != nil {
			t.Fatal(err)
		}
		factory.Start(t.Context())
		if err := factory.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := i.Lister().Len(); n != many {
			t.Errorf("%s: %d objects", contentType, n)
		}
		for _, obj := range i.Lister().List("", nil) {
			if obj.Labels["mine"] != obj.Name {
				t.Errorf("%s: the label that %s was given is now %q", contentType, obj.Name, obj.Labels["mine"])
			}
		}
	}
}
