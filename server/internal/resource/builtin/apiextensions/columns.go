package apiextensions

import (
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	all.Add(apiextensionsv1.SchemeGroupVersion, "CustomResourceDefinition", definitionLayout())
}

func definitionLayout() columns.Layout {
	return columns.Table(func(d *apiextensionsv1.CustomResourceDefinition, _ time.Time) []any {
		return []any{
			d.Name, string(d.Spec.Scope), servedVersions(d), d.CreationTimestamp.UTC().Format(time.RFC3339),
			d.Spec.Group, d.Spec.Names.Kind, strings.Join(d.Spec.Names.ShortNames, ","), established(d),
		}
	},
		columns.NameColumn,
		columns.Text("Scope", "Cluster/Namespaced"),
		columns.Text("Versions", "Served versions"),
		columns.CreatedColumn,
		columns.Wide(columns.Text("Group", "API group")),
		columns.Wide(columns.Text("Kind", "CustomResource kind")),
		columns.Wide(columns.Text("ShortNames", "Short names")),
		columns.Wide(columns.Boolean("Established", "Established status")),
	)
}

// servedVersions lists the versions that are served, and marks the one that is stored.
func servedVersions(d *apiextensionsv1.CustomResourceDefinition) string {
	var names []string
	for _, v := range d.Spec.Versions {
		switch {
		case v.Served && v.Storage:
			names = append(names, v.Name+"(storage)")
		case v.Served:
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

func established(d *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
