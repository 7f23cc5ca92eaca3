// Command apply shows server-side apply with Go types: two managers that want fields of
// one Deployment, and what they can do when they want the same field.
//
//	go run ./examples/apply
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server; default: as kubectl finds it")
	namespace := flag.String("namespace", "default", "where to make the Deployment")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := client.FromKubeconfig(*kubeconfig, client.Options{})
	if err == nil {
		err = run(ctx, client.For[*appsv1.Deployment](c).Namespace(*namespace), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "apply:", err)
		os.Exit(1)
	}
}

// The managers: a release tool, which has the whole Deployment in a file say, and an
// autoscaler, which cares about one field.
const (
	release    = "release"
	autoscaler = "autoscaler"
)

const name = "applied"

func run(ctx context.Context, deployments client.Resource[*appsv1.Deployment], out io.Writer) error {
	err := deployments.Delete(ctx, name, metav1.DeleteOptions{}) // what an earlier run has left
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}

	// Apply creates what does not exist. A manager owns the fields that it applies; of a
	// Go struct these are the fields that are not zero.
	web := func(image string, replicas *int32) *appsv1.Deployment {
		labels := map[string]string{"app": name}
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{
				Replicas: replicas, // nil: the manager has no opinion
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
				},
			},
		}
	}
	d, err := deployments.Apply(ctx, web("web:1", new(int32(3))), metav1.ApplyOptions{FieldManager: release})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "release applies web:1 and 3 replicas: %s\n", describe(d))

	// The autoscaler applies an object with nothing but its field. The release tool owns
	// that field with another value: that is a conflict, which says whose it is.
	scaled := func(replicas int32) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
	}
	_, err = deployments.Apply(ctx, scaled(5), metav1.ApplyOptions{FieldManager: autoscaler})
	conflict, ok := errors.AsType[*client.ApplyConflictError](err)
	if !ok {
		return fmt.Errorf("want a conflict: %w", err)
	}
	for _, c := range conflict.Conflicts {
		fmt.Fprintf(out, "autoscaler applies 5 replicas: refused, %s is %s's\n", c.Field, c.Manager)
	}

	// 1. Force takes the field over. The other manager is not asked.
	if d, err = deployments.Apply(ctx, scaled(5), metav1.ApplyOptions{FieldManager: autoscaler, Force: true}); err != nil {
		return err
	}
	fmt.Fprintf(out, "autoscaler forces 5 replicas: %s\n", describe(d))

	// 2. To leave a field to the other manager is to apply without it. So the release tool
	// changes the image, and the replicas stay.
	if d, err = deployments.Apply(ctx, web("web:2", nil), metav1.ApplyOptions{FieldManager: release}); err != nil {
		return err
	}
	fmt.Fprintf(out, "release applies web:2 without replicas: %s\n", describe(d))

	// 3. To apply the present value is to share the field: from now on neither changes it
	// without a conflict.
	if _, err = deployments.Apply(ctx, web("web:2", new(int32(5))), metav1.ApplyOptions{FieldManager: release}); err != nil {
		return err
	}
	_, err = deployments.Apply(ctx, scaled(6), metav1.ApplyOptions{FieldManager: autoscaler})
	fmt.Fprintf(out, "release applies 5 replicas, too; autoscaler applies 6: refused %t\n", apierrors.IsConflict(err))

	// What a manager has applied before, and leaves out now, is removed, unless another
	// one owns it, too. Here the autoscaler lets go of everything.
	nothing := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if d, err = deployments.Apply(ctx, nothing, metav1.ApplyOptions{FieldManager: autoscaler}); err != nil {
		return err
	}
	fmt.Fprintf(out, "autoscaler applies nothing: %s\n", describe(d))
	if d, err = deployments.Apply(ctx, web("web:2", nil), metav1.ApplyOptions{FieldManager: release}); err != nil {
		return err
	}
	fmt.Fprintf(out, "release applies no replicas either: %s, the server's default\n", describe(d))
	return nil
}

func describe(d *appsv1.Deployment) string {
	return fmt.Sprintf("%s, %d replicas", d.Spec.Template.Spec.Containers[0].Image, *d.Spec.Replicas)
}
