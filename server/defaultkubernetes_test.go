package server_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
)

// TestDefaultKubernetesComesBack: while a server runs, it restores the Service by which programs find the API, and
// its own address behind that.
func TestDefaultKubernetesComesBack(t *testing.T) {
	ctx, name := deadline(t), "kubernetes"
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory})
	c := s.client(t)
	services := client.For[*corev1.Service](c).Namespace("default")
	endpoints := client.For[*corev1.Endpoints](c).Namespace("default")
	slices := client.For[*discoveryv1.EndpointSlice](c).Namespace("default")
	must(t, services.Delete(ctx, name, metav1.DeleteOptions{}))
	must(t, endpoints.Delete(ctx, name, metav1.DeleteOptions{}))
	must(t, slices.Delete(ctx, name, metav1.DeleteOptions{}))
	testwait.Stable(t, "the Service is there", func() (any, bool) {
		svc, err := services.Get(ctx, name, metav1.GetOptions{})
		return []any{svc, err}, err == nil && svc.Spec.ClusterIP == "10.96.0.1"
	})
	testwait.Stable(t, "the Endpoints are there", func() (any, bool) {
		all, err := endpoints.Get(ctx, name, metav1.GetOptions{})
		return []any{all, err}, err == nil && len(all.Subsets) == 1 && len(all.Subsets[0].Addresses) == 1
	})
	hasAddress := func() (any, bool) {
		slice, err := slices.Get(ctx, name, metav1.GetOptions{})
		return []any{slice, err}, err == nil && len(slice.Endpoints) == 1 && slice.Endpoints[0].Addresses[0] == "127.0.0.1"
	}
	testwait.Stable(t, "the EndpointSlice is there", hasAddress)
	_, err := slices.Patch(ctx, name, types.MergePatchType, []byte(`{"endpoints":[]}`), metav1.PatchOptions{})
	must(t, err)
	testwait.Stable(t, "the address is there", hasAddress)
}
