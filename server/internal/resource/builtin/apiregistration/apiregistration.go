// Package apiregistration defines APIServices.
package apiregistration

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	return []*resource.Resource{
		define.Resource[apiregistrationv1.APIService, apiregistrationv1.APIServiceList](apiregistrationv1.SchemeGroupVersion, define.Kind{
			Name: "APIService", Plural: "apiservices", Categories: []string{"api-extensions"},
			Cluster: true, Path: "apiregistration.k8s.io/apiservices", Status: true, StatusKeeps: resource.AllMetadata, NoGeneration: true, ConditionalOnly: true,
		}, serviceRules()),
	}
}

func serviceRules() define.Rules[*apiregistrationv1.APIService] {
	return define.Rules[*apiregistrationv1.APIService]{
		Default: func(s *apiregistrationv1.APIService) {
			if s.Spec.Service != nil {
				apiregistrationv1.SetDefaults_ServiceReference(s.Spec.Service)
			}
		},
		PrepareForCreate: func(s *apiregistrationv1.APIService) {
			if s.Spec.Service == nil {
				s.Status.Conditions = []apiregistrationv1.APIServiceCondition{Local()}
			}
		},
		NameRule:       serviceName,
		Validate:       validateService,
		ValidateStatus: func(s, _ *apiregistrationv1.APIService) field.ErrorList { return validateStatus(&s.Status) },
	}
}

// Local returns the condition of an APIService whose group and version this server serves
// itself.
func Local() apiregistrationv1.APIServiceCondition {
	return apiregistrationv1.APIServiceCondition{
		Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue, LastTransitionTime: metav1.Now(),
		Reason: "Local", Message: "Local APIServices are always available",
	}
}

// The highest values of the two priorities.
const (
	maxGroupPriority   = 20000
	maxVersionPriority = 1000
)

// serviceName returns the rule for the name of an APIService, which follows from its spec. A
// generateName, too, has to be all of it.
func serviceName(s *apiregistrationv1.APIService) apivalidation.ValidateNameFunc {
	want := s.Spec.Version + "." + s.Spec.Group
	return func(name string, _ bool) []string {
		if problems := content.IsPathSegmentName(name); len(problems) > 0 || name == want {
			return problems
		}
		return []string{fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", want)}
	}
}

func validateService(s *apiregistrationv1.APIService) field.ErrorList {
	spec, at := &s.Spec, validate.SpecPath
	var errs field.ErrorList
	if spec.Group == "" && spec.Version != "v1" {
		errs = append(errs, field.Required(at.Child("group"), "only v1 may have an empty group and it better be legacy kube"))
	}
	if spec.Group != "" {
		errs = append(errs, invalid(at.Child("group"), spec.Group, utilvalidation.IsDNS1123Subdomain(spec.Group))...)
	}
	errs = append(errs, invalid(at.Child("version"), spec.Version, utilvalidation.IsDNS1035Label(spec.Version))...)
	if p := spec.GroupPriorityMinimum; p <= 0 || p > maxGroupPriority {
		errs = append(errs, field.Invalid(at.Child("groupPriorityMinimum"), p, "must be positive and less than 20000"))
	}
	if p := spec.VersionPriority; p <= 0 || p > maxVersionPriority {
		errs = append(errs, field.Invalid(at.Child("versionPriority"), p, "must be positive and less than 1000"))
	}
	if spec.Service == nil {
		return append(errs, validateLocal(spec)...)
	}
	service := at.Child("service")
	errs = append(errs, validate.Required(service.Child("namespace"), spec.Service.Namespace)...)
	errs = append(errs, validate.Required(service.Child("name"), spec.Service.Name)...)
	if port := spec.Service.Port; port != nil {
		if problems := utilvalidation.IsValidPortNum(int(*port)); problems != nil {
			errs = append(errs, field.Invalid(service.Child("port"), *port, "port is not valid: "+strings.Join(problems, ", ")))
		}
	}
	if spec.InsecureSkipTLSVerify && len(spec.CABundle) > 0 {
		errs = append(errs, field.Invalid(at.Child("insecureSkipTLSVerify"), true, "may not be true if caBundle is present"))
	}
	return errs
}

// validateLocal checks what must be absent without a server to connect to.
func validateLocal(spec *apiregistrationv1.APIServiceSpec) field.ErrorList {
	var errs field.ErrorList
	if n := len(spec.CABundle); n > 0 {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("caBundle"), fmt.Sprintf("%d bytes", n), "local APIServices may not have a caBundle"))
	}
	if spec.InsecureSkipTLSVerify {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("insecureSkipTLSVerify"), true, "local APIServices may not have insecureSkipTLSVerify"))
	}
	return errs
}

func validateStatus(s *apiregistrationv1.APIServiceStatus) field.ErrorList {
	var errs field.ErrorList
	for i, c := range s.Conditions {
		switch c.Status {
		case apiregistrationv1.ConditionTrue, apiregistrationv1.ConditionFalse, apiregistrationv1.ConditionUnknown:
		default:
			errs = append(errs, field.NotSupported(field.NewPath("status", "conditions").Index(i).Child("status"), c.Status,
				[]apiregistrationv1.ConditionStatus{apiregistrationv1.ConditionTrue, apiregistrationv1.ConditionFalse, apiregistrationv1.ConditionUnknown}))
		}
	}
	return errs
}

// invalid returns an error for each problem of a value.
func invalid(at *field.Path, value string, problems []string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(at, value, problem))
	}
	return errs
}
