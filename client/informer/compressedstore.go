package informer

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
)

// CompressObjects has the informer keep its objects encoded and compressed, and
// decode them anew for each read; a Factory with Options.CompressObjects does it.
// It must be called before the start, and before the Lister is used.
//
// It is for large caches that are read seldom or object by object. A cached pod
// takes a sixth of the memory, or less, and a read of it some 20 µs; List, and a
// handler that is added after the start, decode everything. What a read returns
// belongs to the caller. What handlers are called with is shared among them.
func (i *SharedInformer[T]) CompressObjects() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase != idle {
		return fmt.Errorf("informer %s: compression must be asked for before the start", i.name)
	}
	return i.compressObjects()
}

func (i *SharedInformer[T]) compressObjects() error {
	if _, already := i.indexer.(*compressedStore[T]); already {
		return nil
	}
	s, err := newCompressedStore(i.indexer.Indexers())
	if err != nil {
		return fmt.Errorf("informer %s: objects cannot be compressed: %w", i.name, err)
	}
	i.indexer = s
	i.disableInterning() // what is encoded shares nothing, and sharing would hold the last states
	return nil
}

const (
	// dictionaryObjects are the first objects, which all others are compressed
	// against; dictionaryBytes bounds what they take. They stay as they are.
	dictionaryObjects = 16
	dictionaryBytes   = 48 << 10
)

// compressedStore is a store of encoded objects.
type compressedStore[T client.Object] struct {
	codec   codec[T]
	indexer *cache.Indexer[*encoded[T]]

	// mu serializes writers, which hold objects before they are encoded. It is
	// taken before the Indexer's lock.
	mu         sync.Mutex
	seen       int
	sample     []byte   // the encoding of the first objects, while there is no dictionary
	dictionary *s2.Dict // nil until there are enough objects; then constant
	scratch    []byte
	functions  cache.Indexers[T]

	buffers sync.Pool // of *[]byte, for reads
}

// encoded is an object of the store. All but obj is constant.
type encoded[T client.Object] struct {
	key        string
	data       []byte
	dictionary *s2.Dict // nil: data is not compressed
	// obj is the object itself while it is being indexed, and for ever if it cannot
	// be encoded (data is nil). Guarded by the store's mu in the first case.
	obj T
}

func newCompressedStore[T client.Object](indexers cache.Indexers[T]) (*compressedStore[T], error) {
	c, err := encodingOf[T]()
	if err != nil {
		return nil, err
	}
	s := &compressedStore[T]{codec: c, functions: cache.Indexers[T]{}}
	s.buffers.New = func() any { return new([]byte) }
	s.indexer = cache.NewIndexer(func(e *encoded[T]) (string, error) { return e.key, nil }, nil)
	return s, s.AddIndexers(indexers)
}

// encode needs mu.
func (s *compressedStore[T]) encode(key string, obj T) *encoded[T] {
	e := &encoded[T]{key: key, obj: obj}
	var err error
	s.scratch, err = s.codec.append(s.scratch[:0], obj)
	if err == nil && !s.codec.exact {
		_, err = s.codec.decode(s.scratch)
	}
	if err != nil {
		return e
	}
	if s.dictionary == nil {
		e.data = append([]byte{}, s.scratch...)
		s.learn(s.scratch)
		return e
	}
	e.data = append([]byte{}, s.dictionary.Encode(nil, s.scratch)...)
	e.dictionary = s.dictionary
	return e
}

// learn adds an object to the dictionary to be. It needs mu.
func (s *compressedStore[T]) learn(data []byte) {
	s.sample = append(s.sample, data...)
	if s.seen++; s.seen < dictionaryObjects && len(s.sample) < dictionaryBytes {
		return
	}
	s.dictionary = s2.MakeDict(s.sample[max(0, len(s.sample)-dictionaryBytes):], nil)
	s.sample = nil
}

// decode returns a new object.
func (s *compressedStore[T]) decode(e *encoded[T]) T {
	if e.data == nil {
		return e.obj
	}
	data := e.data
	if e.dictionary != nil {
		buffer := s.buffers.Get().(*[]byte)
		defer s.buffers.Put(buffer)
		var err error
		if *buffer, err = e.dictionary.Decode((*buffer)[:cap(*buffer)], e.data); err != nil {
			panic(fmt.Sprintf("cached object %s cannot be decompressed: %v", e.key, err)) // memory is corrupt
		}
		data = *buffer
	}
	obj, err := s.codec.decode(data)
	if err != nil {
		panic(fmt.Sprintf("cached object %s cannot be decoded: %v", e.key, err)) // encode has decoded it
	}
	return obj
}

func (s *compressedStore[T]) decodeAll(all []*encoded[T]) []T {
	objs := make([]T, len(all))
	for n, e := range all {
		objs[n] = s.decode(e)
	}
	return objs
}

func (s *compressedStore[T]) KeyOf(obj T) (string, error) { return cache.MetaNamespaceKey(obj) }

// IndexSizes returns the sizes of the indexes.
func (s *compressedStore[T]) IndexSizes() []cache.IndexSize { return s.indexer.IndexSizes() }

// AddIndexers has the functions called with objects that are decoded, but for
// those that are being stored.
func (s *compressedStore[T]) AddIndexers(indexers cache.Indexers[T]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	wrapped := cache.Indexers[*encoded[T]]{}
	for name, valuesOf := range indexers {
		if valuesOf == nil {
			return fmt.Errorf("index %q has no function", name)
		}
		wrapped[name] = func(e *encoded[T]) ([]string, error) {
			if any(e.obj) != any(*new(T)) {
				return valuesOf(e.obj)
			}
			return valuesOf(s.decode(e))
		}
	}
	err := s.indexer.AddIndexers(wrapped)
	present := s.indexer.Indexers()
	for name, valuesOf := range indexers {
		if _, added := present[name]; added && s.functions[name] == nil {
			s.functions[name] = valuesOf
		}
	}
	return err
}

func (s *compressedStore[T]) Swap(key string, obj T) (old T, existed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.encode(key, obj)
	before, existed, err := s.indexer.Swap(key, e)
	e.indexed()
	if existed {
		old = s.decode(before)
	}
	return old, existed, err
}

// indexed lets the object go: its encoding is enough now.
func (e *encoded[T]) indexed() {
	if e.data != nil {
		e.obj = *new(T)
	}
}

func (s *compressedStore[T]) Remove(key string) (old T, existed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, existed := s.indexer.Remove(key)
	if existed {
		old = s.decode(before)
	}
	return old, existed
}

func (s *compressedStore[T]) Replace(objs []T) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*encoded[T], len(objs))
	for n, obj := range objs {
		key, err := s.KeyOf(obj)
		if err != nil {
			return err
		}
		all[n] = s.encode(key, obj)
	}
	err := s.indexer.Replace(all)
	for _, e := range all {
		e.indexed()
	}
	return err
}

func (s *compressedStore[T]) Get(key string) (obj T, ok bool) {
	e, ok := s.indexer.Get(key)
	if ok {
		obj = s.decode(e)
	}
	return obj, ok
}

func (s *compressedStore[T]) List() []T { return s.decodeAll(s.indexer.List()) }

func (s *compressedStore[T]) Keys() []string { return s.indexer.Keys() }

func (s *compressedStore[T]) Len() int { return s.indexer.Len() }

// Range decodes without locks: writers do not wait.
func (s *compressedStore[T]) Range(visit func(key string, obj T) bool) {
	for _, e := range s.indexer.List() {
		if !visit(e.key, s.decode(e)) {
			return
		}
	}
}

func (s *compressedStore[T]) ByIndex(name, value string) ([]T, error) {
	found, err := s.indexer.ByIndex(name, value)
	return s.decodeAll(found), err
}

func (s *compressedStore[T]) ByIndexAny(name string, values ...string) ([]T, error) {
	found, err := s.indexer.ByIndexAny(name, values...)
	return s.decodeAll(found), err
}

func (s *compressedStore[T]) Index(name string, obj T) ([]T, error) {
	s.mu.Lock()
	found, err := s.indexer.Index(name, &encoded[T]{obj: obj})
	s.mu.Unlock()
	return s.decodeAll(found), err
}

func (s *compressedStore[T]) IndexKeys(name, value string) ([]string, error) {
	return s.indexer.IndexKeys(name, value)
}

func (s *compressedStore[T]) IndexValues(name string) ([]string, error) {
	return s.indexer.IndexValues(name)
}

func (s *compressedStore[T]) CountByIndex(name, value string) (int, error) {
	return s.indexer.CountByIndex(name, value)
}

func (s *compressedStore[T]) RangeIndex(name, value string, visit func(key string, obj T) bool) error {
	found, err := s.indexer.ByIndex(name, value)
	for _, e := range found {
		if !visit(e.key, s.decode(e)) {
			break
		}
	}
	return err
}

func (s *compressedStore[T]) Indexers() cache.Indexers[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	functions := cache.Indexers[T]{}
	for name, valuesOf := range s.functions {
		functions[name] = valuesOf
	}
	return functions
}
