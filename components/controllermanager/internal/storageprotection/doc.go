// Package storageprotection keeps claims that pods use, volumes that claims are bound
// to, and the attributes classes of both from being removed: it takes away the finalizers that the admission plugin
// StorageObjectInUseProtection has given them, when they are being deleted and nothing
// uses them any more.
//
// claims.go is the controller of claims, volumes.go that of volumes, classes.go that of
// VolumeAttributesClasses.
//
// Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#storage-object-in-use-protection
package storageprotection
