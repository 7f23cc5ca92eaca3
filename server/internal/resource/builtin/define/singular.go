package define

// SingularDecides makes a field and the list whose first value it shows agree, as Kubernetes' conversion does:
// clients that are older than the list change only the field. member is the value in an element of the list.
func SingularDecides[T any](singular *string, list *[]T, member func(*T) *string) {
	switch {
	case *singular == "" && len(*list) > 0:
		*singular = *member(&(*list)[0])
	case *singular != "" && (len(*list) == 0 || *member(&(*list)[0]) != *singular):
		*list = make([]T, 1)
		*member(&(*list)[0]) = *singular
	}
}
