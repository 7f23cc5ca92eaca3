package node

import (
	"time"

	nodev1 "k8s.io/api/node/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	all.Add(nodev1.SchemeGroupVersion, "RuntimeClass", runtimeClassLayout())
}

func runtimeClassLayout() columns.Layout {
	return columns.Table(func(c *nodev1.RuntimeClass, now time.Time) []any {
		return []any{c.Name, c.Handler, columns.Since(c.CreationTimestamp, now)}
	},
		columns.NameColumn,
		columns.Text("Handler", ""), // as in Kubernetes
		columns.AgeColumn,
	)
}
