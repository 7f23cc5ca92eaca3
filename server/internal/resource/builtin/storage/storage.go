// Package storage defines the kinds of storage.k8s.io.
package storage

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	gv := storagev1.SchemeGroupVersion
	return []*resource.Resource{
		define.Resource[storagev1.StorageClass, storagev1.StorageClassList](gv, define.Kind{
			Name: "StorageClass", Plural: "storageclasses", NamesBeforeFinalizers: true, ShortNames: []string{"sc"}, Cluster: true, NoGeneration: true, ReturnDeleted: true,
		}, storageClassRules()),
		define.Resource[storagev1.VolumeAttachment, storagev1.VolumeAttachmentList](gv, define.Kind{
			Name: "VolumeAttachment", Plural: "volumeattachments", NamesBeforeFinalizers: true, Cluster: true, Status: true, StatusKeeps: resource.AllMetadata, NoGeneration: true, ConditionalOnly: true, ReturnDeleted: true,
		}, volumeAttachmentRules()),
		define.Resource[storagev1.CSIDriver, storagev1.CSIDriverList](gv, define.Kind{
			Name: "CSIDriver", Plural: "csidrivers", NameRuleForNew: true, Cluster: true, NoFirstGeneration: true, ConditionalOnly: true, ReturnDeleted: true,
		}, csiDriverRules()),
		define.Resource[storagev1.CSINode, storagev1.CSINodeList](gv, define.Kind{
			Name: "CSINode", Plural: "csinodes", NamesBeforeFinalizers: true, Cluster: true, Status: true, StatusKeeps: resource.AllMetadata, NoGeneration: true, ConditionalOnly: true, ReturnDeleted: true,
		}, csiNodeRules()),
		define.Resource[storagev1.CSIStorageCapacity, storagev1.CSIStorageCapacityList](gv, define.Kind{
			Name: "CSIStorageCapacity", Plural: "csistoragecapacities", NamesBeforeFinalizers: true, NoGeneration: true, ConditionalOnly: true,
		}, csiStorageCapacityRules()),
		define.Resource[storagev1.VolumeAttributesClass, storagev1.VolumeAttributesClassList](gv, define.Kind{
			Name: "VolumeAttributesClass", Plural: "volumeattributesclasses", ShortNames: []string{"vac"}, Cluster: true, NoGeneration: true, ReturnDeleted: true,
		}, volumeAttributesClassRules()),
	}
}
