package fieldmanager

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestManyFieldsInNoOrder: so many fit into one request, and the library would take minutes for them.
func TestManyFieldsInNoOrder(t *testing.T) {
	const many, some = 200_000, 20_000
	m := Manager{Resource: builtin.Table().Lookup("", "v1", "configmaps"), Now: time.Unix(1, 0)}
	data := func(n int) map[string]any {
		entries := map[string]any{}
		for i := range n {
			entries[fmt.Sprint("k", i)] = ""
		}
		return entries
	}
	descending := func(n int) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = fmt.Sprintf("example.com/%7d", n-i)
		}
		return list
	}
	for name, test := range map[string]struct {
		data    map[string]any
		list    []any
		refused bool
	}{
		"entries of a map": {data: data(many), refused: true}, "some entries": {data: data(some)},
		"elements of a list": {list: descending(many), refused: true}, "some elements": {list: descending(some)},
	} {
		patch := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "m"}}}
		if test.data != nil {
			patch.Object["data"] = test.data
		} else {
			patch.Object["metadata"].(map[string]any)["finalizers"] = test.list
		}
		_, err := m.Apply(t.Context(), nil, patch, "one", false)
		if test.refused != apierrors.IsRequestEntityTooLargeError(err) || err != nil && !test.refused {
			t.Errorf("apply of %s: %v", name, err)
		}
	}

	// Two that are equal are left to the library.
	created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	for _, element := range descending(many) {
		created.Finalizers = append(created.Finalizers, element.(string))
	}
	created.Finalizers[1] = created.Finalizers[0]
	m.Update(t.Context(), nil, created, "one")
	if created.ManagedFields != nil {
		t.Errorf("created with managedFields of %d managers", len(created.ManagedFields))
	}
}

// TestLargeFieldsThatClientsSend: large managedFields of a client's own are as none.
func TestLargeFieldsThatClientsSend(t *testing.T) {
	m := Manager{Resource: builtin.Table().Lookup("", "v1", "configmaps"), Now: time.Unix(1, 0)}
	for n, want := range map[int]bool{1_000: true, 200_000: false} {
		var fields strings.Builder
		for i := range n {
			fmt.Fprintf(&fields, `,"f:k%07d":{}`, n-i)
		}
		sent := metav1.ManagedFieldsEntry{Manager: "sent", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: fieldsType, FieldsV1: &metav1.FieldsV1{}}
		sent.FieldsV1.SetRawBytes([]byte(`{"f:data":{` + fields.String()[1:] + `}}`))
		created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m", ManagedFields: []metav1.ManagedFieldsEntry{sent}}, Data: map[string]string{fmt.Sprintf("k%07d", n): ""}}
		m.Update(t.Context(), nil, created, "one")
		managers := ""
		for _, e := range created.ManagedFields {
			managers += e.Manager + " "
		}
		if strings.Contains(managers, "sent") != want || managers == "" {
			t.Errorf("%d fields: managers %s", n, managers)
		}
	}
}

// TestManyManagers: entries of before and after are not compared each with each.
func TestManyManagers(t *testing.T) {
	entries := make([]metav1.ManagedFieldsEntry, 100_000)
	for i := range entries {
		entries[i] = metav1.ManagedFieldsEntry{Manager: fmt.Sprint("m", i), Operation: metav1.ManagedFieldsOperationApply}
	}
	backward := slices.Clone(entries)
	slices.Reverse(backward)
	if !EqualButTimes(entries, backward) {
		t.Error("they differ in another order")
	}
	backward[0].Manager = "another"
	if EqualButTimes(entries, backward) {
		t.Error("they are equal without one")
	}
}
