package events_test

import (
	"context"
	"log"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
)

// A controller reports what is worth a user's attention. The Recorder writes in the
// background, for as long as controller.Run runs it: reporting costs no time.
func Example() {
	c, err := client.FromKubeconfig("", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	factory := informer.NewFactory(c, informer.Options{})
	services := informer.For[*corev1.Service](factory, informer.ListOptions{})
	recorder := events.New(c, "service-checker", events.Options{})

	check := func(_ context.Context, key controller.Key) (controller.Result, error) {
		service, ok := services.Lister().Get(key.Namespace, key.Name)
		if ok && len(service.Spec.Selector) == 0 {
			recorder.Warning(service, "NoSelector", "the service selects no pods")
		}
		return controller.Result{}, nil
	}
	checker, err := controller.New(check, controller.Options{Name: "service-checker"})
	if err != nil {
		log.Fatal(err)
	}
	controller.For(checker, services)
	if err := controller.Run(context.Background(), controller.RunOptions{Factory: factory}, checker, recorder); err != nil {
		log.Fatal(err)
	}
}
