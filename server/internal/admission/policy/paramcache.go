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
	mu      sync.Mutex
	entries map[paramVersion]cachedParam
	bytes   int
	refused int // for which there was no room
}

// paramVersion names one version of a parameter as one version of its API shows it.
type paramVersion struct {
	kind     schema.GroupVersionKind
	key, uid string
	revision storage.Revision
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
	return paramVersion{kind, o.Key, o.Attributes.UID, o.Revision}
}

// find returns a parameter, or nil.
func (c *paramCache) find(v paramVersion) resource.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[v].obj
}

// keep keeps a parameter that was decoded from JSON. Where there is no room it seldom does, and
// then drops any others: if a selector finds a little more than there is room for, to drop those
// that were used longest ago would drop each before it is needed again.
func (c *paramCache) keep(v paramVersion, obj resource.Object, json []byte) {
	if !c.takes(len(json)) {
		return
	}
	size := decodedBytes(obj, json)
	if size > maxCachedParams {
		return
	}
	v.key, v.uid = strings.Clone(v.key), strings.Clone(v.uid) // which may share the object's JSON
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.entries[v]; known {
		return
	}
	for other, dropped := range c.entries {
		if c.bytes+size <= maxCachedParams {
			break
		}
		c.bytes -= dropped.bytes
		delete(c.entries, other)
	}
	if c.entries == nil {
		c.entries = map[paramVersion]cachedParam{}
	}
	c.entries[v] = cachedParam{obj, size}
	c.bytes += size
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
