package discovery

import (
	"strconv"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	all.Add(discoveryv1.SchemeGroupVersion, "EndpointSlice", endpointSliceLayout())
}

func endpointSliceLayout() columns.Layout {
	slice := discoveryv1.EndpointSlice{}.SwaggerDoc()
	return columns.Table(func(s *discoveryv1.EndpointSlice, now time.Time) []any {
		ports := make([]string, len(s.Ports))
		for i, p := range s.Ports {
			ports[i] = columns.ValueOr(p.Name, "*")
			if p.Port != nil {
				ports[i] = strconv.Itoa(int(*p.Port))
			}
		}
		var addresses []string
		for _, e := range s.Endpoints {
			addresses = append(addresses, e.Addresses...)
		}
		return []any{
			s.Name, string(s.AddressType), columns.Or(columns.AtMost(3, ",", ports), columns.Unset), columns.Or(columns.AtMost(3, ",", addresses), columns.Unset),
			columns.Since(s.CreationTimestamp, now),
		}
	},
		columns.NameColumn,
		columns.Text("AddressType", slice["addressType"]),
		columns.Text("Ports", slice["ports"]),
		columns.Text("Endpoints", slice["endpoints"]),
		columns.AgeColumn,
	)
}
