package columns

import (
	"time"

	nodev1 "k8s.io/api/node/v1"
)

func nodeGroup(all layouts) {
	all.add(nodev1.SchemeGroupVersion, "RuntimeClass", runtimeClasses())
}

func runtimeClasses() layout {
	return table(func(c *nodev1.RuntimeClass, now time.Time) []any {
		return []any{c.Name, c.Handler, since(c.CreationTimestamp, now)}
	}, nameColumn, text("Handler", "The container runtime's configuration that the class selects."), ageColumn)
}
