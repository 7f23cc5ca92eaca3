package builtin

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func storageResources() []*resource.Resource {
	gv := storagev1.SchemeGroupVersion
	return []*resource.Resource{
		define[storagev1.StorageClass, storagev1.StorageClassList](gv, kind{
			Name: "StorageClass", Plural: "storageclasses", ShortNames: []string{"sc"}, Cluster: true, NoGeneration: true, ReturnDeleted: true,
		}, storageClassRules()),
		define[storagev1.VolumeAttachment, storagev1.VolumeAttachmentList](gv, kind{
			Name: "VolumeAttachment", Plural: "volumeattachments", Cluster: true, Status: true, NoGeneration: true, ConditionalOnly: true, ReturnDeleted: true,
		}, volumeAttachmentRules()),
		define[storagev1.CSIDriver, storagev1.CSIDriverList](gv, kind{
			Name: "CSIDriver", Plural: "csidrivers", Cluster: true, ConditionalOnly: true, ReturnDeleted: true,
		}, csiDriverRules()),
		define[storagev1.CSINode, storagev1.CSINodeList](gv, kind{
			Name: "CSINode", Plural: "csinodes", Cluster: true, NoGeneration: true, ConditionalOnly: true, ReturnDeleted: true,
		}, csiNodeRules()),
		define[storagev1.CSIStorageCapacity, storagev1.CSIStorageCapacityList](gv, kind{
			Name: "CSIStorageCapacity", Plural: "csistoragecapacities", NoGeneration: true, ConditionalOnly: true, ReturnDeleted: true,
		}, csiStorageCapacityRules()),
		define[storagev1.VolumeAttributesClass, storagev1.VolumeAttributesClassList](gv, kind{
			Name: "VolumeAttributesClass", Plural: "volumeattributesclasses", ShortNames: []string{"vac"}, Cluster: true, NoGeneration: true, ReturnDeleted: true,
		}, volumeAttributesClassRules()),
	}
}
