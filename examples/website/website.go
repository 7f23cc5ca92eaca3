package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/scheme"
)

// Website is a page that is served at a host name. crd.yaml defines it for the server.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   WebsiteSpec   `json:"spec"`
	Status WebsiteStatus `json:"status,omitzero"`
}

// WebsiteSpec is what the user wants.
type WebsiteSpec struct {
	Host     string `json:"host"`     // never changes; crd.yaml has the rule
	Page     string `json:"page"`     // HTML
	Replicas int32  `json:"replicas"` // the server's default is 1
}

// WebsiteStatus is what the controller has observed.
type WebsiteStatus struct {
	// ObservedGeneration is the generation of the spec that the rest is about.
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ReadyReplicas      int32              `json:"readyReplicas"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopy copies a Website. It is by hand because the type is small; controller-gen
// generates the same.
func (w *Website) DeepCopy() *Website {
	copied := *w
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	if w.Status.Conditions != nil {
		copied.Status.Conditions = make([]metav1.Condition, len(w.Status.Conditions))
	}
	for i := range w.Status.Conditions {
		w.Status.Conditions[i].DeepCopyInto(&copied.Status.Conditions[i])
	}
	return &copied
}

// DeepCopyObject implements runtime.Object.
func (w *Website) DeepCopyObject() runtime.Object { return w.DeepCopy() }

// register makes the Go type known, once. From then on clients, informers, events and
// owner references know its kind and resource, and no object needs a TypeMeta.
func register(s *scheme.Scheme) error {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Website"}
	return scheme.Register[*Website](s, scheme.Mapping{Kind: kind, Scope: scheme.Namespaced})
}
