package resourcequota

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/quota"
)

// recount lists what some of a quota's amounts limit, and returns what it uses. It asks the server: an
// informer whose watch is broken would not know of objects that exist. The quota's
// version must guard what is written of it, so that nothing was claimed meanwhile.
func (c *Controller) recount(ctx context.Context, q *corev1.ResourceQuota, amounts corev1.ResourceList) (corev1.ResourceList, error) {
	total, now := corev1.ResourceList{}, c.now()
	for resource, evaluator := range evaluators(amounts) {
		var err error
		switch resource.String() {
		case "pods":
			err = count(ctx, client.For[*corev1.Pod](c.client), evaluator, q, amounts, total, now)
		case "services":
			err = count(ctx, client.For[*corev1.Service](c.client), evaluator, q, amounts, total, now)
		case "persistentvolumeclaims":
			err = count(ctx, client.For[*corev1.PersistentVolumeClaim](c.client), evaluator, q, amounts, total, now)
		case quota.DeviceClaims.String():
			err = count(ctx, client.For[*resourcev1.ResourceClaim](c.client), evaluator, q, amounts, total, now)
		default:
			served, mapErr := c.mapper.ByResource(ctx, resource.WithVersion(""))
			if meta.IsNoMatchError(mapErr) {
				continue
			}
			if err = mapErr; err == nil {
				err = count(ctx, client.Metadata(c.client, served.GroupVersionResource()), evaluator, q, amounts, total, now)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return total, nil
}

func count[T client.Object](ctx context.Context, api client.Resource[T], evaluator quota.Evaluator, q *corev1.ResourceQuota, amounts, total corev1.ResourceList, now time.Time) error {
	list, err := api.Namespace(q.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, obj := range list.Items {
		quota.Add(total, evaluator.UsageOf(q, amounts, obj, now))
	}
	return nil
}
