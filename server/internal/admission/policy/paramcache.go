package policy

import (
	"bytes"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// paramCache keeps decoded parameters, so that those which a selector finds are decoded once for
// each version, and not for each request. The objects are shared and must not be modified. The
// zero value is ready; it is safe for concurrent use.
type paramCache struct {
	mu          sync.Mutex
	byNamespace map[string]*keptParams
	bytes       int
	refused     int // for which there was no room
}

// keptParams are the parameters of a namespace, or those without one.
type keptParams struct {
	entries map[paramVersion]cachedParam
	bytes   int
}

// paramVersion names one version of a parameter as one version of its API shows it.
type paramVersion struct {
	kind                schema.GroupVersionKind
	namespace, key, uid string
	revision            storage.Revision
}

type cachedParam struct {
	obj   resource.Object
	bytes int
}

const (
	// maxCachedParams bounds what the cache holds. If a selector finds more, a part of it is
	// decoded for each request.
	maxCachedParams = 32 << 20
	// What something in JSON takes at most beside its text when it is decoded: an object into a struct
	// or into a map, and a member or an element, of which each but the first follows a comma.
	decodedStruct, decodedMap, decodedMember = 1 << 10, 400, 128
	// oneInTaken is of how many parameters for which there is no room one takes the place of others.
	oneInTaken = 8
)

func versionOf(kind schema.GroupVersionKind, o *watchcache.Object) paramVersion {
	return paramVersion{kind, o.Attributes.Namespace, o.Key, o.Attributes.UID, o.Revision}
}

// find returns a parameter, or nil.
func (c *paramCache) find(v paramVersion) resource.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept := c.byNamespace[v.namespace]; kept != nil {
		return kept.entries[v].obj
	}
	return nil
}

// keep keeps a parameter that was decoded from JSON. Where there is no room it seldom does, and
// then drops any others of the namespace that has most: if a selector finds a little more than there is
// room for, to drop those that were used longest ago would drop each before it is needed again, and anybody may
// make thousands in a namespace of its own.
func (c *paramCache) keep(v paramVersion, obj resource.Object, json []byte) {
	if !c.takes(len(json)) {
		return
	}
	size := decodedBytes(obj, json)
	if size > maxCachedParams {
		return
	}
	v.namespace, v.key, v.uid = strings.Clone(v.namespace), strings.Clone(v.key), strings.Clone(v.uid) // which may share the object's JSON
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept := c.byNamespace[v.namespace]; kept != nil {
		if _, known := kept.entries[v]; known {
			return
		}
	}
	if !c.makeRoom(v.namespace, size) {
		return
	}
	if c.byNamespace == nil {
		c.byNamespace = map[string]*keptParams{}
	}
	kept := c.byNamespace[v.namespace]
	if kept == nil {
		kept = &keptParams{entries: map[paramVersion]cachedParam{}}
		c.byNamespace[v.namespace] = kept
	}
	kept.entries[v] = cachedParam{obj, size}
	kept.bytes += size
	c.bytes += size
}

// makeRoom drops parameters of whatever namespace has most, with the one that comes, until there is room for that.
// It returns false if that one alone is more than each of the others has. mu is held.
func (c *paramCache) makeRoom(namespace string, size int) bool {
	for c.bytes+size > maxCachedParams {
		largest, bytes := namespace, size
		if own := c.byNamespace[namespace]; own != nil {
			bytes += own.bytes
		}
		for other, kept := range c.byNamespace {
			if kept.bytes > bytes {
				largest, bytes = other, kept.bytes
			}
		}
		if c.byNamespace[largest] == nil {
			return false
		}
		c.dropOne(largest)
	}
	return true
}

// dropOne drops any parameter of a namespace. mu is held.
func (c *paramCache) dropOne(namespace string) {
	kept := c.byNamespace[namespace]
	for v, dropped := range kept.entries {
		delete(kept.entries, v)
		kept.bytes -= dropped.bytes
		c.bytes -= dropped.bytes
		break
	}
	if len(kept.entries) == 0 {
		delete(c.byNamespace, namespace)
	}
}

// decodedBytes is what a parameter takes, at most. Its strings are parts of its JSON, which it keeps
// in memory. Of a struct, managedFields stay text.
func decodedBytes(obj resource.Object, json []byte) int {
	text, elements, commas := len(json)+len(json)/8, countObjects(json), bytes.Count(json, []byte{','})
	if _, ok := obj.(*unstructured.Unstructured); ok {
		return text + decodedMap*elements + decodedMember*commas
	}
	for _, managed := range obj.GetManagedFields() {
		if managed.FieldsV1 != nil {
			fields := managed.FieldsV1.GetRawBytes()
			elements -= countObjects(fields)
			commas -= bytes.Count(fields, []byte{','})
		}
	}
	return text + decodedStruct*elements + decodedMember*commas
}

func countObjects(json []byte) int { return resource.CountElements("application/json", json) }

// takes reports whether a parameter of so many bytes is to be kept.
func (c *paramCache) takes(size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes+size <= maxCachedParams {
		return true
	}
	c.refused++
	return c.refused%oneInTaken == 0
}
