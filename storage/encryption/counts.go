package encryption

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Operation is a kind of use of a key.
type Operation struct {
	// Resource is that of the values; AllResources if they have parts of several.
	Resource schema.GroupResource
	// ToStorage says that values were encrypted; otherwise they were decrypted.
	ToStorage bool
	// Prefix is that of the key, with its name, such as "k8s:enc:aesgcm:v1:key1:", "" if the
	// values are not encrypted, or "unknown" if there is no such key.
	Prefix string
	// Status is "OK", the code of gRPC that a KMS plugin has answered, or "unknown-non-grpc".
	Status string
}

// counts are how often there was each Operation. The zero value is ready to use.
type counts struct {
	mu sync.RWMutex
	of map[Operation]*atomic.Uint64
}

// add counts an operation.
func (c *counts) add(o Operation) {
	c.mu.RLock()
	n := c.of[o]
	c.mu.RUnlock()
	if n == nil {
		c.mu.Lock()
		if c.of == nil {
			c.of = map[Operation]*atomic.Uint64{}
		}
		if n = c.of[o]; n == nil {
			n = &atomic.Uint64{}
			c.of[o] = n
		}
		c.mu.Unlock()
	}
	n.Add(1)
}

// encrypted counts a value that was to be encrypted.
func (c *counts) encrypted(resource schema.GroupResource, k *key, err error) {
	c.add(Operation{Resource: resource, ToStorage: true, Prefix: k.prefix, Status: statusOf(err)})
}

// decrypted counts a stored value that was to be decrypted.
func (c *counts) decrypted(resource schema.GroupResource, used *key, err error) {
	prefix := "unknown"
	if used != nil {
		prefix = used.prefix
	}
	c.add(Operation{Resource: resource, Prefix: prefix, Status: statusOf(err)})
}

// statusOf is the label that Kubernetes gives an error.
func statusOf(err error) string {
	if err == nil {
		return codes.OK.String()
	}
	var answered interface{ GRPCStatus() *status.Status }
	if errors.As(err, &answered) {
		return answered.GRPCStatus().Code().String()
	}
	return "unknown-non-grpc"
}

// Operations calls visit with how often keys were used, for resources that the configuration
// names, in a stable order.
func (s *Store) Operations(visit func(o Operation, count uint64)) {
	s.counts.mu.RLock()
	operations := make([]Operation, 0, len(s.counts.of))
	for o := range s.counts.of {
		operations = append(operations, o)
	}
	s.counts.mu.RUnlock()
	slices.SortFunc(operations, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Prefix, b.Prefix), cmp.Compare(a.Status, b.Status))
	})
	for _, o := range operations {
		s.counts.mu.RLock()
		n := s.counts.of[o].Load()
		s.counts.mu.RUnlock()
		visit(o, n)
	}
}
