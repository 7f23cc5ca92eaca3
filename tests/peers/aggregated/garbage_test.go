package aggregated

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/client"
	controller "github.com/levelwire/levelwire/components/controllermanager"
	"github.com/levelwire/levelwire/levelwiretest"
)

// TestOwnersBesideAnAggregatedServer: an owner goes although the garbage collector cannot compare the mark of its deletion with
// the versions of an aggregated server, which counts by itself and sends no bookmarks. Without objects its
// version is 0, which is none.
func TestOwnersBesideAnAggregatedServer(t *testing.T) {
	for name, objects := range map[string]int{"without versions": 0, "with versions of its own": 3} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			s := levelwiretest.Start(t)
			cl := s.Client(client.Options{})
			awaitAuthentication(ctx, t, cl)
			storage := newFlunders()
			for range objects {
				storage.revision++
			}
			register(ctx, t, cl, serve(t, writeKubeconfig(t, s.UserConfig("ada", "system:masters")), storage))
			controllers, err := client.New(s.UserConfig("controllers", "system:masters"), client.Options{})
			must(t, err)
			manager, err := controller.NewManager(controllers, controller.Options{Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))})
			must(t, err)
			running, stop := context.WithCancel(ctx)
			ended := make(chan error)
			go func() { ended <- manager.Run(running) }()
			defer func() {
				stop()
				must(t, <-ended)
			}()
			configs := client.For[*corev1.ConfigMap](cl).Namespace("default")
			for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
				owner, err := configs.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
				must(t, err)
				must(t, configs.Delete(ctx, "owner", metav1.DeleteOptions{PropagationPolicy: &policy}))
				awaitDeletion(ctx, t, configs, owner)
			}
		})
	}
}

// awaitDeletion waits until a ConfigMap is gone.
func awaitDeletion(ctx context.Context, t *testing.T, configs client.Resource[*corev1.ConfigMap], owner *corev1.ConfigMap) {
	t.Helper()
	w, err := configs.Watch(ctx, metav1.ListOptions{ResourceVersion: owner.ResourceVersion})
	must(t, err)
	defer w.Close()
	for {
		event, err := w.Next()
		must(t, err)
		if event.Type == apiwatch.Deleted && event.Object.UID == owner.UID {
			return
		}
	}
}

// register has Levelwire serve the aggregated server, and returns when it does.
func register(ctx context.Context, t *testing.T, cl *client.Client, address string) {
	t.Helper()
	host, portText, err := net.SplitHostPort(address)
	must(t, err)
	number, err := strconv.ParseInt(portText, 10, 32)
	must(t, err)
	name, port, protocol := "https", int32(number), corev1.ProtocolTCP
	// The Service may have an endpoint on the loopback, as few may.
	const namespace, service = metav1.NamespaceSystem, "metrics-server"
	_, err = client.For[*corev1.Service](cl).Namespace(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: service}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: name, Port: 443}}},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.For[*discoveryv1.EndpointSlice](cl).Namespace(namespace).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{host}}},
	}, metav1.CreateOptions{})
	must(t, err)
	services := client.For[*apiregistrationv1.APIService](cl)
	registered, err := services.Create(ctx, &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: gv.Version + "." + gv.Group},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: 1000, VersionPriority: 15, InsecureSkipTLSVerify: true,
			Service: &apiregistrationv1.ServiceReference{Namespace: namespace, Name: service},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	w, err := services.Watch(ctx, metav1.ListOptions{ResourceVersion: registered.ResourceVersion})
	must(t, err)
	defer w.Close()
	for {
		event, err := w.Next()
		must(t, err)
		for _, condition := range event.Object.Status.Conditions {
			t.Logf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
			if condition.Type == apiregistrationv1.Available && condition.Status == apiregistrationv1.ConditionTrue {
				return
			}
		}
	}
}
