package differential

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strconv"

	"sigs.k8s.io/yaml"
)

//go:embed objects more
var objectFiles embed.FS

// objectFolders have valid objects, and each makes those of a base. A kind may have several in more: the
// second one is more2.
var objectFolders = map[string]string{small: "objects", more: "more"}

// givenObjects reads the valid objects that stand in the folders, of the kinds that the judge serves.
func givenObjects(c *catalog) ([]*object, error) {
	var list []*object
	for _, base := range []string{small, more} {
		given, err := objectsOf(c, base)
		if err != nil {
			return nil, err
		}
		list = append(list, given...)
	}
	sortObjects(list)
	return list, nil
}

func objectsOf(c *catalog, base string) ([]*object, error) {
	var list []*object
	count := map[*kind]int{}
	err := fs.WalkDir(objectFiles, objectFolders[base], func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := objectFiles.ReadFile(name)
		if err != nil {
			return err
		}
		for _, manifest := range bytes.Split(text, []byte("\n---\n")) {
			o, err := parseObject(c, base, manifest)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if count[o.kind]++; count[o.kind] > 1 {
				if base == small {
					return fmt.Errorf("%s: a second object of %v", name, o.kind)
				}
				o.base = base + strconv.Itoa(count[o.kind])
			}
			list = append(list, o)
		}
		return nil
	})
	return list, err
}

func parseObject(c *catalog, base string, manifest []byte) (*object, error) {
	text, err := yaml.YAMLToJSON(manifest)
	if err != nil {
		return nil, err
	}
	value, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	apiVersion, _ := value["apiVersion"].(string)
	name, _ := value["kind"].(string)
	k := c.find(apiVersion, name)
	if k == nil || k.schema == nil {
		return nil, fmt.Errorf("the judge does not serve the kind %s %s", apiVersion, name)
	}
	return &object{k, base, value}, nil
}

func parseJSON(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value map[string]any
	err := decoder.Decode(&value)
	return value, err
}
