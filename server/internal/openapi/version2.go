package openapi

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/levelwire/levelwire/server/internal/gzipblock"
)

// Part is what some groups add to the one document of version 2. It is kept compressed, and
// joined with others as it is: a definition that changes costs its own group's part, and not
// the whole. Immutable.
type Part struct {
	paths, models gzipblock.Block // members of objects
	sum           [sha256.Size]byte
}

// BuiltinPart describes the groups that have kinds with Go types, and has the models that all
// groups share.
func (b *Builder) BuiltinPart(groups []Group) (*Part, error) {
	names := map[string]bool{}
	for name := range b.models.byName { // the common ones, before others are added
		names[name] = true
	}
	return b.part(groups, names, nil)
}

// CustomPart describes a group that has only custom kinds.
func (b *Builder) CustomPart(of Group) (*Part, error) {
	shared, err := common()
	if err != nil {
		return nil, err
	}
	return b.part([]Group{of}, map[string]bool{}, shared.byName)
}

// part describes groups with the named models and those that they lead to, except some.
func (b *Builder) part(groups []Group, names map[string]bool, except map[string]*model) (*Part, error) {
	var paths members
	for _, of := range groups {
		g, err := b.group(of)
		if err != nil {
			return nil, err
		}
		text, err := g.encodePaths(version2)
		if err != nil {
			return nil, fmt.Errorf("encode OpenAPI of %s: %w", of.Version, err)
		}
		if paths.Len() > 0 {
			paths.WriteByte(',')
		}
		paths.Write(text)
		for _, name := range g.reached() {
			if except[name] == nil {
				names[name] = true
			}
		}
	}
	models, err := b.models.encodeAll(sortedNames(names), version2)
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI version 2: %w", err)
	}
	return newPart(paths.Bytes(), models)
}

func newPart(paths, models []byte) (part *Part, err error) {
	part = &Part{}
	if part.paths, err = gzipblock.Compress(paths); err != nil {
		return nil, err
	}
	if part.models, err = gzipblock.Compress(models); err != nil {
		return nil, err
	}
	sum := sha256.New()
	for _, text := range [][]byte{paths, models} {
		of := sha256.Sum256(text)
		sum.Write(of[:])
	}
	sum.Sum(part.sum[:0])
	return part, nil
}

// V2Document joins the description of everything. The first part is that of BuiltinPart. The
// document's hash stands for the hashes of the parts.
func (b *Builder) V2Document(parts []*Part, others ...Foreign) (*Document, error) {
	info, err := b.info.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z := gzipblock.NewWriter(&out)
	defer z.Release()
	d := &Document{Made: now()}
	join := func(block gzipblock.Block) {
		d.Size += block.Size
		_ = z.Join(block) // to a Buffer, which returns no error
	}
	joinAll := func(of func(*Part) gzipblock.Block) {
		before := d.Size
		for _, part := range parts {
			if of(part).Size > 0 {
				if d.Size > before {
					join(comma)
				}
				join(of(part))
			}
		}
	}
	sum := sha256.New()
	sum.Write(info)
	for _, part := range parts {
		sum.Write(part.sum[:])
	}
	join(gzipblock.Stored([]byte(`{"swagger":"2.0","info":` + string(info) + `,"paths":{`)))
	joinAll(func(part *Part) gzipblock.Block { return part.paths })
	join(gzipblock.Stored([]byte(`},"definitions":{`)))
	joinAll(func(part *Part) gzipblock.Block { return part.models })
	join(gzipblock.Stored([]byte(`}}`)))
	if err := z.Close(); err != nil {
		return nil, err
	}
	d.Gzip = bytes.Clone(out.Bytes())
	d.Hash = hashOf([sha256.Size]byte(sum.Sum(nil)))
	if len(others) == 0 {
		return d, nil
	}
	return d.merged(others)
}

var comma = gzipblock.Stored([]byte(","))

// merged returns the document with the descriptions of other servers.
func (d *Document) merged(others []Foreign) (*Document, error) {
	content, err := d.Content()
	if err != nil {
		return nil, err
	}
	var described spec.Swagger
	if err := described.UnmarshalJSON(content); err != nil {
		return nil, fmt.Errorf("merge OpenAPI version 2: %w", err)
	}
	for _, other := range others {
		other.mergeInto(&described)
	}
	if content, err = described.MarshalJSON(); err != nil {
		return nil, fmt.Errorf("encode OpenAPI version 2: %w", err)
	}
	return NewDocument(content)
}
