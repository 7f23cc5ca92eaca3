package conditions_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/conditions"
)

func ExampleSet() {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	changed := conditions.Set(service, &service.Status.Conditions, conditions.True("Ready", "AddressAssigned", "the address is 10.0.0.1"))
	ready := conditions.Get(service.Status.Conditions, "Ready")
	fmt.Println(changed, ready.Status, ready.Reason, ready.ObservedGeneration)
	// Output: true True AddressAssigned 3
}
