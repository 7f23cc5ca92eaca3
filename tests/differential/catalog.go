package differential

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// kind is a kind at one version, as the judge serves it.
type kind struct {
	groupVersionKind
	plural       string
	namespaced   bool
	verbs        []string
	hasStatus    bool // a subresource of it
	subresources []subresource
	schema       *schema
}

func (k *kind) apiVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// String is the kind as it stands in the names of requests: apps/v1 Deployment.
func (k *kind) String() string { return k.apiVersion() + " " + k.Kind }

// subresource is what is below each object of a kind.
type subresource struct {
	name  string
	verbs []string
}

// document is the path of the kind's OpenAPI document below /openapi/v3/.
func (k *kind) document() string {
	if k.Group == "" {
		return "api/" + k.Version
	}
	return "apis/" + k.apiVersion()
}

// path is where the kind's objects are, in a namespace if they have one.
func (k *kind) path(namespace string) string {
	root := "/" + k.document()
	if k.namespaced {
		root += "/namespaces/" + namespace
	}
	return root + "/" + k.plural
}

// catalog is every kind that the judge serves, in a fixed order. It is also how the catalog
// is stored: the documents are those of the judge.
type catalog struct {
	Discovery []json.RawMessage          `json:"discovery"` // of /api and /apis
	Documents map[string]json.RawMessage `json:"documents"` // by their path below /openapi/v3/

	kinds []*kind
}

// find returns the kind that String writes so.
func (c *catalog) find(apiVersion, name string) *kind {
	for _, k := range c.kinds {
		if k.apiVersion() == apiVersion && k.Kind == name {
			return k
		}
	}
	return nil
}

// groupDiscovery is what is read of an APIGroupDiscoveryList.
type groupDiscovery struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []struct {
			Version   string `json:"version"`
			Resources []struct {
				Resource     string           `json:"resource"`
				ResponseKind groupVersionKind `json:"responseKind"`
				Scope        string           `json:"scope"`
				Verbs        []string         `json:"verbs"`
				Subresources []struct {
					Subresource string   `json:"subresource"`
					Verbs       []string `json:"verbs"`
				} `json:"subresources"`
			} `json:"resources"`
		} `json:"versions"`
	} `json:"items"`
}

// load fills kinds from the documents.
func (c *catalog) load() error {
	documents := map[string]*document{}
	for name, text := range c.Documents {
		d, err := parseDocument(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		documents[name] = d
	}
	c.kinds = nil
	for _, text := range c.Discovery {
		var list groupDiscovery
		if err := json.Unmarshal(text, &list); err != nil {
			return fmt.Errorf("discovery: %w", err)
		}
		for _, group := range list.Items {
			for _, version := range group.Versions {
				for _, r := range version.Resources {
					k := &kind{groupVersionKind: r.ResponseKind, plural: r.Resource, namespaced: r.Scope == "Namespaced", verbs: r.Verbs}
					k.Group, k.Version = group.Metadata.Name, version.Version
					for _, s := range r.Subresources {
						k.hasStatus = k.hasStatus || s.Subresource == "status"
						k.subresources = append(k.subresources, subresource{s.Subresource, s.Verbs})
					}
					if d := documents[k.document()]; d != nil {
						k.schema = d.schemaOf(k.groupVersionKind)
					}
					c.kinds = append(c.kinds, k)
				}
			}
		}
	}
	slices.SortFunc(c.kinds, func(a, b *kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
	})
	return nil
}

// creatable returns the kinds that can be created and that odd values can be found for.
func (c *catalog) creatable() []*kind {
	var list []*kind
	for _, k := range c.kinds {
		if slices.Contains(k.verbs, "create") && k.schema != nil {
			list = append(list, k)
		}
	}
	return list
}
