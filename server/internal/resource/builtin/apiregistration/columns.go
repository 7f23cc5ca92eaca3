package apiregistration

import (
	"time"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	all.Add(apiregistrationv1.SchemeGroupVersion, "APIService", columns.Table(func(s *apiregistrationv1.APIService, now time.Time) []any {
		service := "Local"
		if ref := s.Spec.Service; ref != nil {
			service = ref.Namespace + "/" + ref.Name
		}
		available := "Unknown"
		typeOf := func(c *apiregistrationv1.APIServiceCondition) apiregistrationv1.APIServiceConditionType {
			return c.Type
		}
		if c := columns.Condition(s.Status.Conditions, typeOf, apiregistrationv1.Available); c != nil {
			available = string(c.Status)
			if c.Status != apiregistrationv1.ConditionTrue {
				available += " (" + c.Reason + ")"
			}
		}
		return []any{s.Name, service, available, columns.Since(s.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("Service", "The reference to the service that hosts this API endpoint."),
		columns.Text("Available", "Whether this service is available."),
		columns.AgeColumn,
	))
}
