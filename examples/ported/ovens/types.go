package ovens

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/scheme"
)

// Oven is a custom kind. It needs no list type: Register says what it is, once.
type Oven struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OvenSpec   `json:"spec,omitempty"`
	Status            OvenStatus `json:"status,omitempty"`
}

// OvenSpec is what an oven should be.
type OvenSpec struct {
	Trays int32 `json:"trays,omitempty"`
}

// OvenStatus is what was observed.
type OvenStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopy returns a copy that shares nothing. Code generators write such methods.
func (o *Oven) DeepCopy() *Oven {
	out := *o
	o.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = nil
	for _, c := range o.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, *c.DeepCopy())
	}
	return &out
}

// DeepCopyObject implements runtime.Object.
func (o *Oven) DeepCopyObject() runtime.Object { return o.DeepCopy() }

// Register tells a scheme of the kind; nil is scheme.Default.
func Register(s *scheme.Scheme) error {
	return scheme.Register[*Oven](s, scheme.Mapping{
		Kind: schema.GroupVersionKind{Group: "bakery.example.com", Version: "v1", Kind: "Oven"}, Scope: scheme.Namespaced,
	})
}
