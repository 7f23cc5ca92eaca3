// Package encryption is a storage.Store that encrypts the values of another one, as
// kube-apiserver does with --encryption-provider-config: the same configuration file,
// and the same bytes in etcd, so that either server reads what the other has written.
// The ciphers are k8s.io/apiserver's. A value is bound to its key in the store, which
// the ciphers of the providers aesgcm and kms authenticate.
//
// Start reading at Store in store.go. config.go reads the file, keys.go tries the keys
// of a resource on a value, kms.go follows the key of a KMS v2 plugin, and reload.go
// reads the file again when it has changed.
//
// A value that no key decrypts is no error of the read: storage.Unreadable stands in its
// place, and what decodes values leaves it out. That a plugin does not answer is an
// error, storage.ErrUnavailable.
package encryption
