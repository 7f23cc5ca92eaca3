// Package storageprotection keeps claims that pods use, and volumes that claims are bound
// to, from being removed: it takes away the finalizers that the admission plugin
// StorageObjectInUseProtection has given them, when they are being deleted and nothing
// uses them any more.
//
// claims.go is the controller of claims, volumes.go that of volumes.
//
// Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#storage-object-in-use-protection
package storageprotection
