package validate

import (
	"reflect"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TemplateMetadata checks the metadata of a template for claims, which has labels and annotations only.
func TemplateMetadata(path *field.Path, meta *metav1.ObjectMeta) field.ErrorList {
	errs := apivalidation.ValidateAnnotations(meta.Annotations, path.Child("annotations"))
	errs = append(errs, metavalidation.ValidateLabels(meta.Labels, path.Child("labels"))...)
	members := reflect.ValueOf(*meta)
	for i := range members.NumField() {
		name := members.Type().Field(i).Name
		if name == "Labels" || name == "Annotations" || members.Field(i).IsZero() {
			continue
		}
		// kube-apiserver makes the path of the member's name in Go, as in uID.
		errs = append(errs, field.Forbidden(path.Child(strings.ToLower(name[:1])+name[1:]), "cannot be set"))
	}
	return errs
}
