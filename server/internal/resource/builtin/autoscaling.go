package builtin

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// autoscalingResources are autoscaling/v2, which is stored, and v1 over it.
func autoscalingResources() []*resource.Resource {
	entry := kind{
		Name: "HorizontalPodAutoscaler", Plural: "horizontalpodautoscalers", ShortNames: []string{"hpa"}, Categories: inAll, Status: true, NoGeneration: true,
	}
	stored := define[autoscalingv2.HorizontalPodAutoscaler, autoscalingv2.HorizontalPodAutoscalerList](autoscalingv2.SchemeGroupVersion, entry, autoscalerRules())
	shown := define[autoscalingv1.HorizontalPodAutoscaler, autoscalingv1.HorizontalPodAutoscalerList](autoscalingv1.SchemeGroupVersion, entry, oldAutoscalerRules())
	show(shown, stored, oldAutoscalerFromNew, oldAutoscalerToNew)
	return []*resource.Resource{stored, shown}
}
