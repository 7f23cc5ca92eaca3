package columns

import (
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
)

func apiserverinternalGroup(all layouts) {
	all.add(apiserverinternalv1alpha1.SchemeGroupVersion, "StorageVersion", storageVersions())
}

func storagemigrationGroup(all layouts) {
	all.add(storagemigrationv1.SchemeGroupVersion, "StorageVersionMigration", storageVersionMigrations())
}

func storageVersions() layout {
	return table(func(v *apiserverinternalv1alpha1.StorageVersion, now time.Time) []any {
		servers := make([]string, len(v.Status.StorageVersions))
		for i, s := range v.Status.StorageVersions {
			servers[i] = s.APIServerID + "=" + s.EncodingVersion
		}
		return []any{
			v.Name, value(v.Status.CommonEncodingVersion, unset), or(atMost(3, ",", servers), unset),
			since(v.CreationTimestamp, now),
		}
	},
		nameColumn,
		text("CommonEncodingVersion", "The version that all servers write, if they agree."),
		text("StorageVersions", "The version that each server writes."),
		ageColumn,
	)
}

func storageVersionMigrations() layout {
	return table(func(m *storagemigrationv1.StorageVersionMigration, _ time.Time) []any {
		resource := m.Spec.Resource.String()
		return []any{m.Name, resource}
	}, nameColumn, text("Resource", "The resource whose objects are written again."))
}
