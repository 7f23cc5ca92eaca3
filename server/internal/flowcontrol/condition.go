package flowcontrol

import (
	"context"
	"fmt"
	"maps"
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// dangling is the condition Dangling that a FlowSchema should have.
func dangling(s *flowcontrolv1.FlowSchema, levelExists bool) flowcontrolv1.FlowSchemaCondition {
	level := s.Spec.PriorityLevelConfiguration.Name
	if levelExists {
		return flowcontrolv1.FlowSchemaCondition{
			Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionFalse, Reason: "Found",
			Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", level),
		}
	}
	return flowcontrolv1.FlowSchemaCondition{
		Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionTrue, Reason: "NotFound",
		Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q but there is no such object", level),
	}
}

// writeConditions writes the conditions of FlowSchemas that are not right.
func (c *Controller) writeConditions(ctx context.Context, o objects) error {
	for _, name := range slices.Sorted(maps.Keys(o.schemas)) {
		s := o.schemas[name]
		exists := o.withMandatory().levels[s.Spec.PriorityLevelConfiguration.Name] != nil
		if want := dangling(s, exists); !setCondition(s.DeepCopy(), want) {
			continue
		}
		_, err := c.schemas.UpdateStatus(ctx, "", name, func(current resource.Object) (resource.Object, error) {
			if current == nil {
				return nil, apierrors.NewNotFound(flowcontrolv1.Resource("flowschemas"), name)
			}
			changed := current.DeepCopyObject().(*flowcontrolv1.FlowSchema)
			// If it is another one now, that is an event that comes next: it has another level, or
			// another server has seen its level come, or go, that is still to come here.
			if changed.ResourceVersion == s.ResourceVersion {
				setCondition(changed, dangling(changed, exists))
			}
			return changed, nil
		}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, Unconditional: true})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("the status of FlowSchema %s: %w", name, err)
		}
	}
	return nil
}

// setCondition sets a condition, and reports whether it was another.
func setCondition(s *flowcontrolv1.FlowSchema, c flowcontrolv1.FlowSchemaCondition) bool {
	c.LastTransitionTime = metav1.Now()
	i := slices.IndexFunc(s.Status.Conditions, func(has flowcontrolv1.FlowSchemaCondition) bool { return has.Type == c.Type })
	if i < 0 {
		s.Status.Conditions = append(s.Status.Conditions, c)
		return true
	}
	has := &s.Status.Conditions[i]
	if has.Status == c.Status {
		c.LastTransitionTime = has.LastTransitionTime
	}
	if *has == c {
		return false
	}
	*has = c
	return true
}
