package ovens

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "bakery.example.com", Version: "v1"}

// Oven is a custom kind.
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

// OvenList is a list of ovens.
type OvenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Oven `json:"items"`
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

// DeepCopyObject implements runtime.Object.
func (l *OvenList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Oven, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopy()
	}
	return &out
}

// AddToScheme tells a scheme of the kind.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(groupVersion, &Oven{}, &OvenList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return nil
}
