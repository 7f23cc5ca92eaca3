package builtin

import (
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// storageVersionColumns adds the columns of kinds that a kube-apiserver keeps
// for itself and that are not served here.
func storageVersionColumns(all columns.Layouts) {
	all.Add(apiserverinternalv1alpha1.SchemeGroupVersion, "StorageVersion", storageVersionLayout())
	all.Add(storagemigrationv1.SchemeGroupVersion, "StorageVersionMigration", storageVersionMigrationLayout())
}

func storageVersionLayout() columns.Layout {
	return columns.Table(func(v *apiserverinternalv1alpha1.StorageVersion, now time.Time) []any {
		servers := make([]string, len(v.Status.StorageVersions))
		for i, s := range v.Status.StorageVersions {
			servers[i] = s.APIServerID + "=" + s.EncodingVersion
		}
		return []any{
			v.Name, columns.ValueOr(v.Status.CommonEncodingVersion, columns.Unset), columns.Or(columns.AtMost(3, ",", servers), columns.Unset),
			columns.Since(v.CreationTimestamp, now),
		}
	},
		columns.NameColumn,
		columns.Text("CommonEncodingVersion", "The version that all servers write, if they agree."),
		columns.Text("StorageVersions", "The version that each server writes."),
		columns.AgeColumn,
	)
}

func storageVersionMigrationLayout() columns.Layout {
	return columns.Table(func(m *storagemigrationv1.StorageVersionMigration, _ time.Time) []any {
		resource := m.Spec.Resource.String()
		return []any{m.Name, resource}
	}, columns.NameColumn, columns.Text("Resource", "The resource whose objects are written again."))
}
