package storage

import (
	"bytes"
	"fmt"
)

// encryptedPrefix begins every encrypted value in the format of Kubernetes.
const encryptedPrefix = "k8s:enc:"

// unreadablePrefix begins a value made by Unreadable. No format of objects begins
// with a zero byte.
const unreadablePrefix = "\x00unreadable:"

// UnreadableError is the reason why nothing can decode a value: the server lacks what
// decrypts it, or the value is damaged.
type UnreadableError struct {
	// Reason is a sentence without the key of the value.
	Reason string
	// Damaged says that other values with the same encryption can be read, so this
	// value is the fault, and not the server's configuration.
	Damaged bool
}

func (e *UnreadableError) Error() string { return e.Reason }

// Unreadable returns a value that stands for one that a store holds and cannot
// decrypt. Whatever decodes values fails on it, as on a value that is damaged, so it
// stops nothing but reads of its own key. CheckReadable returns e again.
func Unreadable(e *UnreadableError) []byte {
	kind := "c"
	if e.Damaged {
		kind = "d"
	}
	return []byte(unreadablePrefix + kind + e.Reason)
}

// CheckReadable returns an *UnreadableError for a value that cannot be decoded because
// it is encrypted, or was made by Unreadable; nil for any other value. It is for
// values whose decoding has failed.
func CheckReadable(value []byte) error {
	if rest, ok := bytes.CutPrefix(value, []byte(unreadablePrefix)); ok && len(rest) > 0 {
		return &UnreadableError{Reason: string(rest[1:]), Damaged: rest[0] == 'd'}
	}
	if prefix := EncryptedBy(value); prefix != "" {
		return &UnreadableError{Reason: fmt.Sprintf("the value is encrypted with %q, and the server has no --encryption-provider-config for it", prefix)}
	}
	return nil
}

// maxEncryptedPrefix bounds what EncryptedBy returns of a damaged value.
const maxEncryptedPrefix = 253

// EncryptedBy returns the prefix of an encrypted value: provider, version and name of
// the key, such as "k8s:enc:aesgcm:v1:key1:". It is empty if the value is not encrypted.
func EncryptedBy(value []byte) string {
	if !bytes.HasPrefix(value, []byte(encryptedPrefix)) {
		return ""
	}
	end := len(encryptedPrefix)
	for range 3 { // provider, version, key
		next := bytes.IndexByte(value[end:min(len(value), maxEncryptedPrefix)], ':')
		if next < 0 {
			break
		}
		end += next + 1
	}
	return string(value[:end])
}
