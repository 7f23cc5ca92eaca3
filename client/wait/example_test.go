package wait_test

import (
	"context"
	"log"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/wait"
)

// A program that waits for a rollout, for five minutes at most.
func ExampleUntil() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := client.FromKubeconfig("", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	web, err := wait.Until(ctx, client.For[*appsv1.Deployment](c).Namespace("default"), "web", func(d *appsv1.Deployment) bool {
		return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas && d.Status.AvailableReplicas == *d.Spec.Replicas
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Println(web.Name, "is at generation", web.Generation)
}
