package differential

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"

	"sigs.k8s.io/yaml"
)

//go:embed objects
var objectFiles embed.FS

// smallObjects reads the valid objects that stand in the folder objects, of the kinds that
// the judge serves.
func smallObjects(c *catalog) ([]*object, error) {
	var list []*object
	err := fs.WalkDir(objectFiles, "objects", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := objectFiles.ReadFile(name)
		if err != nil {
			return err
		}
		for _, manifest := range bytes.Split(text, []byte("\n---\n")) {
			o, err := parseObject(c, manifest)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			list = append(list, o)
		}
		return nil
	})
	sortObjects(list)
	return list, err
}

func parseObject(c *catalog, manifest []byte) (*object, error) {
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
	return &object{k, small, value}, nil
}

func parseJSON(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value map[string]any
	err := decoder.Decode(&value)
	return value, err
}
