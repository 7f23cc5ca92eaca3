// Package storagemigration defines StorageVersionMigrations.
package storagemigration

import (
	storagemigrationv1 "k8s.io/api/storagemigration/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	return []*resource.Resource{
		define.Resource[storagemigrationv1.StorageVersionMigration, storagemigrationv1.StorageVersionMigrationList](storagemigrationv1.SchemeGroupVersion, define.Kind{
			Name: "StorageVersionMigration", Plural: "storageversionmigrations", NamesBeforeFinalizers: true, StoredIn: []string{"v1beta1"}, Cluster: true,
			Status: true, StatusKeeps: resource.AllMetadata, NoGeneration: true, ConditionalOnly: true,
		}, migrationRules()),
	}
}
