package state

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/klauspost/compress/s2"
)

// Compressor compresses the JSON of a cache's objects, each by itself, against a
// dictionary: a sample of the objects. It is safe for concurrent use.
//
// A dictionary lives as long as an object that is compressed against it. So a new one
// has to pay: it is made if it saves more on the objects at hand than it takes, and a
// cache of few objects has none, and is not compressed.
type Compressor struct {
	opts CompressorOptions
	// bytes is how many the dictionaries take that are in memory. It lies apart, so that
	// a dictionary's cleanup does not hold what holds the dictionary.
	bytes *atomic.Int64

	mu     sync.Mutex
	newest *dictionary
}

// CompressorOptions tunes a Compressor.
type CompressorOptions struct {
	// Always has each object compressed, whether or not that saves memory: for tests.
	Always bool
}

// NewCompressor returns a Compressor without a dictionary.
func NewCompressor(opts CompressorOptions) *Compressor {
	return &Compressor{opts: opts, bytes: new(atomic.Int64)}
}

// DictionaryBytes is how many bytes the dictionaries take that objects are compressed
// against.
func (c *Compressor) DictionaryBytes() int64 { return c.bytes.Load() }

// compressed is the JSON of an object, compressed.
type compressed struct {
	bytes      []byte
	dictionary *s2.Dict // for reads only: the tables of a writer are the dictionary's
}

func (c *compressed) size() int64 { return int64(unsafe.Sizeof(*c)) + int64(cap(c.bytes)) }

// Compression is the compressed JSON of an object, to be put in the place of the other.
type Compression struct {
	Object     *Object
	compressed *compressed
}

// Install puts the compressed JSON in the place of the other, whose readers are not
// disturbed, and returns how many bytes that saves.
func (r Compression) Install() (saved int64) {
	o := r.Object
	if !o.compressed.CompareAndSwap(nil, r.compressed) {
		return 0
	}
	o.first.Store(nil)
	return int64(o.length) - r.compressed.size()
}

// Compressible reports whether compressing the object frees memory: it is not compressed
// yet, and its attributes do not share the JSON.
func (o *Object) Compressible() bool { return o.ownsAttributes && o.first.Load() != nil }

const (
	dictionaryBytes = 64 << 10 // no distance within a dictionary is longer
	dictionarySpare = 16       // of these, behind the sample: otherwise s2 would copy it
	sampleBytes     = 16 << 10 // that one object gives to a dictionary
	triedObjects    = 8        // with which two dictionaries are compared
)

// dictionary is what objects are compressed against.
type dictionary struct {
	writer *s2.Dict // with the tables that encoding makes
	reader *s2.Dict
}

// size is how many bytes of memory a dictionary keeps as long as objects need it.
func (*dictionary) size() int64 { return dictionaryBytes }

// newDictionary makes a dictionary of a sample of the objects, evenly spaced.
func newDictionary(objects []*Object) *dictionary {
	const most = dictionaryBytes - dictionarySpare
	content := make([]byte, 0, dictionaryBytes)
	total := 0
	for _, o := range objects {
		total += min(o.length, sampleBytes)
	}
	samples := max(1, min(len(objects), most*len(objects)/max(total, 1)))
	for i := range samples {
		json := objects[i*len(objects)/samples].JSON()
		json = json[:min(len(json), sampleBytes, most-len(content))]
		content = append(content, json...)
	}
	if len(content) < s2.MinDictSize {
		return nil
	}
	return &dictionary{writer: s2.MakeDict(content, nil), reader: s2.MakeDict(content, nil)}
}

// sizeOf returns how long an object is with a dictionary, which may be nil.
func (d *dictionary) sizeOf(o *Object, scratch *[]byte) int {
	if d == nil {
		return o.length
	}
	*scratch = d.writer.Encode((*scratch)[:cap(*scratch)], o.JSON())
	return len(*scratch)
}

// Compress compresses objects that are Compressible and save by it. Neighbors have most
// in common: what is given together should be near each other. mostDictionaries is how
// many bytes of dictionaries there may be for another one to be made. Nothing is changed
// until the results are installed.
func (c *Compressor) Compress(objects []*Object, mostDictionaries int64) []Compression {
	objects = slices.DeleteFunc(slices.Clone(objects), func(o *Object) bool { return o.first.Load() == nil })
	if len(objects) == 0 {
		return nil
	}
	with := c.choose(objects, mostDictionaries)
	if with == nil {
		return nil
	}
	results := make([]Compression, len(objects))
	workers := min(runtime.GOMAXPROCS(0), len(objects)/64+1)
	var wait sync.WaitGroup
	for n := range workers {
		wait.Go(func() {
			var scratch []byte
			for i := n * len(objects) / workers; i < (n+1)*len(objects)/workers; i++ {
				results[i] = c.compress(objects[i], with, &scratch)
			}
		})
	}
	wait.Wait()
	return slices.DeleteFunc(results, func(r Compression) bool { return r.compressed == nil })
}

// compress compresses one object, or returns nothing if that does not save a quarter.
func (c *Compressor) compress(o *Object, with *dictionary, scratch *[]byte) Compression {
	size := with.sizeOf(o, scratch)
	made := compressed{bytes: append([]byte(nil), (*scratch)[:size]...), dictionary: with.reader}
	if made.size() > int64(o.length)/4*3 && !c.opts.Always {
		return Compression{}
	}
	return Compression{Object: o, compressed: &made}
}

// choose returns the newest dictionary, or another that is made of the objects if it is
// worth its memory; nil if none is.
func (c *Compressor) choose(objects []*Object, mostDictionaries int64) *dictionary {
	c.mu.Lock()
	newest := c.newest
	c.mu.Unlock()
	if c.opts.Always && newest != nil {
		return newest
	}
	candidate := newDictionary(objects)
	if candidate == nil || !c.opts.Always && (c.bytes.Load()+candidate.size() > mostDictionaries || !pays(candidate, newest, objects)) {
		return newest
	}
	c.bytes.Add(candidate.size())
	runtime.AddCleanup(candidate.reader, func(bytes *atomic.Int64) { bytes.Add(-dictionaryBytes) }, c.bytes)
	c.mu.Lock()
	c.newest = candidate
	c.mu.Unlock()
	return candidate
}

// pays reports whether objects are shorter with a dictionary than with another one, or
// with none, by more than it takes itself.
func pays(candidate, other *dictionary, objects []*Object) bool {
	var scratch []byte
	tried, saved, total := 0, 0, 0
	for _, o := range objects {
		total += o.length
	}
	for i := range triedObjects {
		// Between the samples of which the dictionary was made.
		o := objects[(2*i+1)*len(objects)/(2*triedObjects)]
		tried += o.length
		saved += other.sizeOf(o, &scratch) - candidate.sizeOf(o, &scratch)
	}
	return int64(saved)*int64(total) > candidate.size()*int64(max(tried, 1))
}
