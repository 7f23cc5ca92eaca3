package columns

import (
	"strconv"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
)

func discoveryGroup(all layouts) {
	all.add(discoveryv1.SchemeGroupVersion, "EndpointSlice", endpointSlices())
}

func endpointSlices() layout {
	return table(func(s *discoveryv1.EndpointSlice, now time.Time) []any {
		ports := make([]string, len(s.Ports))
		for i, p := range s.Ports {
			ports[i] = value(p.Name, "*")
			if p.Port != nil {
				ports[i] = strconv.Itoa(int(*p.Port))
			}
		}
		var addresses []string
		for _, e := range s.Endpoints {
			addresses = append(addresses, e.Addresses...)
		}
		return []any{
			s.Name, string(s.AddressType), or(atMost(3, ",", ports), unset), or(atMost(3, ",", addresses), unset),
			since(s.CreationTimestamp, now),
		}
	},
		nameColumn,
		text("AddressType", "The kind of all addresses in the slice."),
		text("Ports", "The ports of every endpoint."),
		text("Endpoints", "The endpoints' addresses."),
		ageColumn,
	)
}
