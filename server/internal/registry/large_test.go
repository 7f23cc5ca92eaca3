package registry_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// What these tests write fits into one request, and would take minutes, or more memory than there
// is, if each element were compared with each.

// TestManyOwners: owners are compared by what they are, also those that have one uid, and an error
// about all of them is not said for each.
func TestManyOwners(t *testing.T) {
	const many = 20_000
	controls := true
	f := newFixture(t)
	for name, change := range map[string]func(ref *metav1.OwnerReference, i int){
		"distinct":   func(ref *metav1.OwnerReference, i int) { ref.UID = types.UID(fmt.Sprint("u", i)) },
		"of one uid": func(ref *metav1.OwnerReference, i int) { ref.Name = fmt.Sprint("o", many-i) },
		"descending": func(ref *metav1.OwnerReference, i int) { ref.UID = types.UID(fmt.Sprintf("u%6d", many-i)) },
		"equal":      func(*metav1.OwnerReference, int) {},
		"controlling": func(ref *metav1.OwnerReference, i int) {
			ref.UID, ref.Controller = types.UID(fmt.Sprint("u", i)), &controls
		},
	} {
		obj := configMap("a", "1")
		for i := range many {
			ref := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "u"}
			change(&ref, i)
			obj.OwnerReferences = append(obj.OwnerReferences, ref)
		}
		_, err := f.of(t, "configmaps").Create(t.Context(), "default", obj, registry.WriteOptions{DryRun: true})
		if refused := name == "controlling"; refused != apierrors.IsInvalid(err) || err != nil && !refused {
			t.Errorf("%s: %.300v", name, err)
		}
		if err != nil && len(err.Error()) > 16<<20 {
			t.Errorf("%s: an answer of %d bytes", name, len(err.Error()))
		}
	}
}

// TestManyServicePorts: node ports are looked up, and a dry run does not look for more of them than
// there are.
func TestManyServicePorts(t *testing.T) {
	const many = 50_000
	ports := func(change func(p *corev1.ServicePort, i int)) []corev1.ServicePort {
		list := make([]corev1.ServicePort, many)
		for i := range list {
			list[i] = corev1.ServicePort{Name: fmt.Sprint("p", i), Protocol: corev1.ProtocolTCP, Port: int32(i)}
			change(&list[i], i)
		}
		return list
	}
	f := newFixture(t)
	f.create(t, "services", newService("old", withType(corev1.ServiceTypeNodePort)))
	for name, test := range map[string]struct {
		change func(*corev1.Service)
		want   string
	}{
		"node ports for all": {func(s *corev1.Service) {
			s.Spec.Type, s.Spec.Ports = corev1.ServiceTypeNodePort, ports(func(*corev1.ServicePort, int) {})
		}, "range is full"},
		"one for all": {func(s *corev1.Service) { // whose rules the fixture's kind does not have
			s.Spec.Type, s.Spec.Ports = corev1.ServiceTypeNodePort, ports(func(p *corev1.ServicePort, _ int) { p.Port = 80 })
		}, ""},
		"named": {func(s *corev1.Service) {
			s.Spec.Type, s.Spec.Ports = corev1.ServiceTypeNodePort, ports(func(p *corev1.ServicePort, i int) { p.NodePort = 40_000 + int32(i) })
		}, "provided port is not in the valid range"},
		"families": {func(s *corev1.Service) {
			for i := range many {
				s.Spec.IPFamilies = append(s.Spec.IPFamilies, corev1.IPFamily(fmt.Sprint(i)))
			}
		}, "Unsupported value"},
	} {
		_, err := f.of(t, "services").Create(t.Context(), "default", newService("new", test.change), registry.WriteOptions{DryRun: true})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %.300v, want %q", name, err, test.want)
		}
		_, err = f.of(t, "services").Update(t.Context(), "default", "old", changing(test.change), registry.UpdateOptions{WriteOptions: registry.WriteOptions{DryRun: true}})
		if err == nil {
			t.Errorf("%s: an update has no error", name)
		}
	}
}
