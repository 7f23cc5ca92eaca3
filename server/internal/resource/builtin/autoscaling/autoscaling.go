// Package autoscaling defines HorizontalPodAutoscalers: autoscaling/v2 is
// stored, autoscaling/v1 is a view of it.
package autoscaling

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns autoscaling/v2, which is stored, and v1 over it.
func Resources() []*resource.Resource {
	entry := define.Kind{
		Name: "HorizontalPodAutoscaler", Plural: "horizontalpodautoscalers", NameRuleForNew: true, ShortNames: []string{"hpa"}, Categories: define.InAll, Status: true,
	}
	stored := define.Resource[autoscalingv2.HorizontalPodAutoscaler, autoscalingv2.HorizontalPodAutoscalerList](autoscalingv2.SchemeGroupVersion, entry, autoscalerRules())
	shown := define.Resource[autoscalingv1.HorizontalPodAutoscaler, autoscalingv1.HorizontalPodAutoscalerList](autoscalingv1.SchemeGroupVersion, entry, v1Rules())
	define.View(shown, stored, v1FromStored, v1ToStored)
	shown.StorageCompletes = true
	return []*resource.Resource{stored, shown}
}
