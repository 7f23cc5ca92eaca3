package mergestrategy_test

import (
	"reflect"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/server/internal/resource/mergestrategy"
)

// TestConditionsBesideClientGo: the schema in client-go, which other tests compare with, has not
// these kinds. Each of their conditions has an owner of its own.
func TestConditionsBesideClientGo(t *testing.T) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[apiextensionsv1.CustomResourceDefinitionStatus](),
		reflect.TypeFor[apiregistrationv1.APIServiceStatus](),
	} {
		got := mergestrategy.OfField(of, "conditions")
		if got.Kind != mergestrategy.Map || !slices.Equal(got.Keys, []string{"type"}) {
			t.Errorf("the conditions of %v are merged by %+v", of, got)
		}
	}
}
