package componentstatus

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// timeout is how long a component may take to answer, as kube-apiserver has it.
const timeout = 20 * time.Second

// Check asks a component how it is. It returns soon after ctx has ended.
type Check func(ctx context.Context) corev1.ComponentCondition

// Components are the checks of a control plane's components, by their names. They are called
// concurrently.
type Components map[string]Check

// Get asks one component. It returns false if there is none of the name.
func (c Components) Get(ctx context.Context, name string) (*corev1.ComponentStatus, bool) {
	check, ok := c[name]
	if !ok {
		return nil, false
	}
	return statusOf(ctx, name, check), true
}

// List asks all components at the same time. Their statuses are in the order of their names.
func (c Components) List(ctx context.Context) []*corev1.ComponentStatus {
	names := slices.Sorted(maps.Keys(c))
	statuses := make([]*corev1.ComponentStatus, len(names))
	var asked sync.WaitGroup
	for i, name := range names {
		asked.Go(func() { statuses[i] = statusOf(ctx, name, c[name]) })
	}
	asked.Wait()
	return statuses
}

func statusOf(ctx context.Context, name string, check Check) *corev1.ComponentStatus {
	return &corev1.ComponentStatus{ObjectMeta: metav1.ObjectMeta{Name: name}, Conditions: []corev1.ComponentCondition{check(ctx)}}
}

// Func is the check of a component that a function of this process knows: it returns what is wrong
// with it, or nil.
func Func(check func(context.Context) error) Check {
	return func(ctx context.Context) corev1.ComponentCondition {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if err := check(ctx); err != nil {
			return condition(corev1.ConditionFalse, "", err.Error())
		}
		return condition(corev1.ConditionTrue, "ok", "")
	}
}

// condition returns what a component has said, or why it could not be asked.
func condition(status corev1.ConditionStatus, message, failure string) corev1.ComponentCondition {
	return corev1.ComponentCondition{Type: corev1.ComponentHealthy, Status: status, Message: message, Error: failure}
}
