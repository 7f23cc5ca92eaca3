package encoding

import (
	"encoding/json"
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/core"
	"github.com/levelwire/levelwire/server/internal/status"
)

// IncludeObject reads which part of an object a table's rows carry. The
// default is its metadata.
func IncludeObject(query url.Values) (metav1.IncludeObjectPolicy, error) {
	switch policy := metav1.IncludeObjectPolicy(query.Get("includeObject")); policy {
	case "":
		return metav1.IncludeMetadata, nil
	case metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
		return policy, nil
	default:
		return "", status.BadRequest("Unable to convert to Table as requested: includeObject: Invalid value: %q: must be 'Metadata', 'Object', 'None', or empty", policy)
	}
}

// appendTableHead appends a table up to the bracket that opens its rows.
// definitions nil is null, as in all but the first event of a watch.
func appendTableHead(dst []byte, version string, meta []byte, definitions []metav1.TableColumnDefinition) ([]byte, error) {
	dst = append(dst, `{"kind":"Table","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, version...)
	dst = append(dst, `","metadata":`...)
	dst = append(dst, meta...)
	dst = append(dst, `,"columnDefinitions":`...)
	encoded, err := json.Marshal(definitions)
	if err != nil {
		return nil, fmt.Errorf("encode table columns: %w", err)
	}
	dst = append(dst, encoded...)
	return append(dst, `,"rows":[`...), nil
}

const tableTail = `]}`

// appendRow appends one row. shown is the object's JSON in the version of res.
func appendRow(dst []byte, res *resource.Resource, version string, include metav1.IncludeObjectPolicy, obj resource.Object, shown []byte) ([]byte, error) {
	cells, err := json.Marshal(res.Row(obj))
	if err != nil {
		return nil, fmt.Errorf("encode table cells of %s: %w", res.Kind, err)
	}
	dst = append(dst, `{"cells":`...)
	dst = append(dst, cells...)
	if conditions := core.PodConditions(obj); len(conditions) > 0 {
		encoded, err := json.Marshal(conditions)
		if err != nil {
			return nil, fmt.Errorf("encode the table row's conditions of %s: %w", res.Kind, err)
		}
		dst = append(dst, `,"conditions":`...)
		dst = append(dst, encoded...)
	}
	dst = append(dst, `,"object":`...)
	switch include {
	case metav1.IncludeNone:
		dst = append(dst, `null`...)
	case metav1.IncludeObject:
		dst = append(dst, shown...)
	default:
		dst = append(dst, metadataJSON(res, shown, version)...)
	}
	return append(dst, '}'), nil
}

// tableOfOne returns the table of a single object, whose version is also the
// table's.
func tableOfOne(res *resource.Resource, version string, include metav1.IncludeObjectPolicy, obj resource.Object, shown []byte) ([]byte, error) {
	meta, err := json.Marshal(metav1.ListMeta{ResourceVersion: obj.GetResourceVersion()})
	if err != nil {
		return nil, err
	}
	out, err := appendTableHead(nil, version, meta, res.Columns)
	if err != nil {
		return nil, err
	}
	if out, err = appendRow(out, res, version, include, obj, shown); err != nil {
		return nil, err
	}
	return append(out, tableTail...), nil
}
