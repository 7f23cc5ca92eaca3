package apiextensions

import (
	"encoding/json"
	"errors"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// upgrade decodes a definition in the version v1beta1. A kube-apiserver stores all
// definitions in it, because it is shorter, so every existing cluster has such ones.
func upgrade(value []byte, version string) (resource.Object, error) {
	if version != apiextensionsv1beta1.SchemeGroupVersion.Version {
		return nil, errors.New("it is none of v1 and v1beta1: rewrite it in v1 with the server that wrote it")
	}
	old := &apiextensionsv1beta1.CustomResourceDefinition{}
	if err := json.Unmarshal(value, old); err != nil {
		return nil, err
	}
	apiextensionsv1beta1.SetObjectDefaults_CustomResourceDefinition(old)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(old, internal, nil); err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(internal, crd, nil); err != nil {
		return nil, err
	}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return crd, nil
}
