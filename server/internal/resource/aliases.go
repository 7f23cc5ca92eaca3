package resource

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v2"
)

// maxExpandedYAML bounds what a YAML body may become when its aliases are
// replaced by what they stand for: as much as a JSON body may have. The YAML
// library bounds only how many nodes there are, not how long each of them is.
const maxExpandedYAML = 3 << 20

// checkAliases refuses a YAML body whose aliases repeat so much that its JSON
// would be huge. A body that is no YAML at all is left to the converter.
func checkAliases(body []byte) error {
	if bytes.IndexByte(body, '*') < 0 || bytes.IndexByte(body, '&') < 0 {
		return nil
	}
	var tree any
	if yaml.Unmarshal(body, &tree) != nil {
		return nil
	}
	if expandedSize(tree) > maxExpandedYAML {
		return &BoundError{fmt.Sprintf("the YAML body expands by its aliases to more than %d bytes", maxExpandedYAML)}
	}
	return nil
}

// expandedSize is about how long the JSON of a decoded YAML document is. It
// stops counting above the limit. Repeated scalars share memory in the tree,
// so the tree itself is small.
func expandedSize(tree any) int {
	size := 4
	switch node := tree.(type) {
	case string:
		size += len(node)
	case []any:
		for _, item := range node {
			if size += expandedSize(item); size > maxExpandedYAML {
				return size
			}
		}
	case map[any]any:
		for key, value := range node {
			if size += expandedSize(key) + expandedSize(value); size > maxExpandedYAML {
				return size
			}
		}
	}
	return size
}
