package storagemigration

import (
	"time"

	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	all.Add(storagemigrationv1.SchemeGroupVersion, "StorageVersionMigration", migrationLayout())
}

func migrationLayout() columns.Layout {
	name := columns.NameColumn
	name.Format = "" // as in Kubernetes
	return columns.Table(func(m *storagemigrationv1.StorageVersionMigration, _ time.Time) []any {
		resource, status := m.Spec.Resource.String(), "Unknown"
		for _, c := range m.Status.Conditions {
			if c.Status != metav1.ConditionTrue {
				continue
			}
			switch storagemigrationv1.MigrationConditionType(c.Type) {
			case storagemigrationv1.MigrationRunning, storagemigrationv1.MigrationSucceeded, storagemigrationv1.MigrationFailed:
				status = c.Type
			}
		}
		return []any{m.Name, resource, status}
	},
		name,
		columns.Text("Resource", "GroupResource to migrate"),
		columns.Text("Status", "Status of the migration"),
	)
}
