// Package apiextensions defines CustomResourceDefinitions.
package apiextensions

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/patterntable"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	return []*resource.Resource{
		define.Resource[apiextensionsv1.CustomResourceDefinition, apiextensionsv1.CustomResourceDefinitionList](apiextensionsv1.SchemeGroupVersion, define.Kind{
			Name: "CustomResourceDefinition", Plural: "customresourcedefinitions", MarkedByTime: true, PreconditionFailed: "precondition failed",
			ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"},
			Cluster: true, Path: "apiextensions.k8s.io/customresourcedefinitions", Upgrade: upgrade,
			Status: true, ConditionalOnly: true,
			NameRuleForNew: true,
		}, definitionRules()),
	}
}

// definitionRules are those of custom resource definitions. What a definition
// must be is checked by the library that kube-apiserver checks it with, so
// that its messages are the ones that are known.
func definitionRules() define.Rules[*apiextensionsv1.CustomResourceDefinition] {
	return define.Rules[*apiextensionsv1.CustomResourceDefinition]{
		NameRule:         nameOfDefinition,
		Default:          defaultDefinition,
		CompleteStored:   dropUnreadItems,
		PrepareForCreate: rememberStoredVersion,
		PrepareForUpdate: func(crd, _ *apiextensionsv1.CustomResourceDefinition) { rememberStoredVersion(crd) },
		ValidateCreate: func(crd *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
			return checkDefinitions(func(list ...*apiextensions.CustomResourceDefinition) field.ErrorList {
				if errs := checkRules(list[0], nil); len(errs) > 0 {
					return errs
				}
				return apiextensionsvalidation.ValidateCustomResourceDefinition(context.Background(), list[0])
			}, crd)
		},
		ValidateUpdate: func(crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
			return checkDefinitions(func(list ...*apiextensions.CustomResourceDefinition) field.ErrorList {
				if errs := checkRules(list[0], list[1]); len(errs) > 0 {
					if unchanged(crd, old) {
						return nil
					}
					return errs
				}
				return apiextensionsvalidation.ValidateCustomResourceDefinitionUpdate(context.Background(), list[0], list[1])
			}, crd, old)
		},
		ValidateStatus: func(crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
			return checkDefinitions(func(list ...*apiextensions.CustomResourceDefinition) field.ErrorList {
				return apiextensionsvalidation.ValidateUpdateCustomResourceDefinitionStatus(context.Background(), list[0], list[1])
			}, crd, old)
		},
		// Of the first DELETE, Kubernetes looks at no propagation policy: the definition's objects are no dependents.
		FirstFinalizers: func(crd *apiextensionsv1.CustomResourceDefinition, _ *metav1.DeleteOptions) []string {
			return crd.Finalizers
		},
		PrepareForDelete: beginDeletion,
		Warnings:         warnings,
	}
}

// beginDeletion gives a definition the finalizer that keeps it until its objects
// are gone, and the condition that says so. Clients that read the answer to their
// DELETE find the condition in it.
func beginDeletion(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) {
	if !slices.Contains(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		crd.Finalizers = append(slices.Clip(crd.Finalizers), apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	crd.Status.Conditions = slices.Clone(crd.Status.Conditions)
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue,
		Reason: "InstanceDeletionPending", Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	})
	apihelpers.FindCRDCondition(crd, apiextensionsv1.Terminating).LastTransitionTime = now
}

func defaultDefinition(crd *apiextensionsv1.CustomResourceDefinition) {
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	if w := crd.Spec.Conversion.Webhook; w != nil && w.ClientConfig != nil && w.ClientConfig.Service != nil {
		apiextensionsv1.SetDefaults_ServiceReference(w.ClientConfig.Service)
	}
	writeJSONAnew(crd)
}

// rememberStoredVersion notes that objects of the storage version may lie in
// the store from now on. Only a person, or a migration, takes a version off
// that list again.
func rememberStoredVersion(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range crd.Spec.Versions {
		if v.Storage && !slices.Contains(crd.Status.StoredVersions, v.Name) {
			// The status may share memory with the definition that is replaced.
			crd.Status.StoredVersions = append(slices.Clip(crd.Status.StoredVersions), v.Name)
		}
	}
}

// checkDefinitions runs a check of the library, which wants the unversioned
// type. Of the metadata only the names and the approval of groups of Kubernetes
// itself are its concern: the rest, and that there is a name, has been checked as everybody's.
func checkDefinitions(check func(...*apiextensions.CustomResourceDefinition) field.ErrorList, list ...*apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	unversioned := make([]*apiextensions.CustomResourceDefinition, len(list))
	for i, crd := range list {
		unversioned[i] = &apiextensions.CustomResourceDefinition{}
		// The library's conversion shares memory with its source.
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd.DeepCopy(), unversioned[i], nil); err != nil {
			return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
		}
	}
	defer patterntable.Trim() // the patterns that default values have been checked with
	return slices.DeleteFunc(check(unversioned...), func(e *field.Error) bool {
		approved := e.Field == "metadata.annotations["+apiextensionsv1.KubeAPIApprovedAnnotation+"]"
		return !approved && strings.HasPrefix(e.Field, "metadata.") // the registry has said it
	})
}

// nameOfDefinition: a definition is called as its resource, in kube-apiserver's words.
func nameOfDefinition(crd *apiextensionsv1.CustomResourceDefinition) validation.ValidateNameFunc {
	return func(name string, prefix bool) []string {
		problems := validation.NameIsDNSSubdomain(name, prefix)
		if name != crd.Spec.Names.Plural+"."+crd.Spec.Group {
			problems = append(problems, `must be spec.names.plural+"."+spec.group`)
		}
		return problems
	}
}
