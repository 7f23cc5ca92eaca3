package define

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Scale makes the scale subresource of a kind. The function of returns where an
// object keeps the number of replicas wanted and observed, and its selector.
func Scale[T resource.Object](of func(T) (wanted **int32, observed int32, selector *metav1.LabelSelector)) *resource.Scale {
	return &resource.Scale{
		Get: func(obj resource.Object) (*int32, int32, string, error) {
			wanted, observed, selector := of(obj.(T))
			text, err := selectorString(selector)
			return new(ValueOr(*wanted, 0)), observed, text, err
		},
		Set: func(obj resource.Object, replicas int32) error {
			wanted, _, _ := of(obj.(T))
			*wanted = &replicas
			return nil
		},
	}
}

// selectorString returns a selector as the string that a Scale carries.
func selectorString(selector *metav1.LabelSelector) (string, error) {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return "", err
	}
	return compiled.String(), nil
}
