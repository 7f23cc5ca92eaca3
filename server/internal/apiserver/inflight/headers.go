package inflight

// The headers that say how a request was classified, as net/http writes their names.
const (
	FlowSchemaHeader    = "X-Kubernetes-Pf-Flowschema-Uid"
	PriorityLevelHeader = "X-Kubernetes-Pf-Prioritylevel-Uid"
)
