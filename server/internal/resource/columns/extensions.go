package columns

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

func extensionsGroup(all layouts) {
	all.add(apiextensionsv1.SchemeGroupVersion, "CustomResourceDefinition", nameAndCreation())
}
