package subresource_test

import (
	"context"
	"fmt"
	"log"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/subresource"
)

func connect() *client.Client {
	c, err := client.FromKubeconfig("", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

// SetReplicas works for every kind that has a scale, custom ones included, and changes
// nothing else.
func ExampleSetReplicas() {
	deployments := client.For[*appsv1.Deployment](connect()).Namespace("default")
	scale, err := subresource.SetReplicas(context.Background(), deployments, "web", 5, metav1.PatchOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(scale.Spec.Replicas, "wanted,", scale.Status.Replicas, "there")
}

// An eviction waits until the PodDisruptionBudget of the pod allows it.
func ExampleEvict() {
	ctx := context.Background()
	pods := client.For[*corev1.Pod](connect()).Namespace("default")
	for {
		err := subresource.Evict(ctx, pods, "web-0", metav1.DeleteOptions{})
		if !apierrors.IsTooManyRequests(err) {
			fmt.Println(err) // nil: the pod is being deleted
			return
		}
		time.Sleep(5 * time.Second)
	}
}

// A token for another program, that only one audience accepts.
func ExampleCreateToken() {
	accounts := client.For[*corev1.ServiceAccount](connect()).Namespace("default")
	hour := int64(time.Hour / time.Second)
	token, err := subresource.CreateToken(context.Background(), accounts, "builder", authenticationv1.TokenRequestSpec{
		Audiences: []string{"https://registry.example"}, ExpirationSeconds: &hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(token.Token) > 0, token.ExpirationTimestamp)
}
