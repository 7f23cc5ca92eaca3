package watchcache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/storage"
)

// replica is the stored form of the i-th of many pods of one Deployment, in the given phase.
func replica(i int, phase string) (key string, stored []byte) {
	name := fmt.Sprintf("web-7d4b9c6f5-%07d", i)
	hash := rand.New(rand.NewPCG(uint64(i), 7))
	return "one/" + name, fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"one","uid":"%08x-0000-4000-8000-%012x",`+
		`"labels":{"app":"web","pod-template-hash":"7d4b9c6f5"},"managedFields":%s},`+
		`"spec":{"nodeName":"node-%d","containers":[{"name":"main","image":"registry.example.com/shop/web:v1.2.3"}]},`+
		`"status":{"phase":%q,"podIP":"10.1.%d.%d","containerStatuses":[{"containerID":"containerd://%016x%016x"}]}}`,
		name, hash.Uint32(), hash.Uint64()>>16, managed, i%1000, phase, i>>8&255, i&255, hash.Uint64(), hash.Uint64())
}

// managed is what is the same in all of them.
var managed = `[{"manager":"kubelet","operation":"Update","fieldsV1":{` + strings.Repeat(`"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{}}},`, 25) + `"f:podIP":{}}}]`

func replicaObject(t testing.TB, c *Cache, i int, phase string, revision storage.Revision) *Object {
	t.Helper()
	key, stored := replica(i, phase)
	o, err := c.Decode(key, stored, revision)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func replicas(t testing.TB, c *Cache, n int) []*Object {
	t.Helper()
	objects := make([]*Object, n)
	for i := range objects {
		objects[i] = replicaObject(t, c, i, "Pending", 1)
	}
	return objects
}

// filledWith is a cache that was filled as a feed does.
func filledWith(t testing.TB, opts Options, n int) *Cache {
	t.Helper()
	c := New(podResource(), opts)
	objects := replicas(t, c, n)
	c.Compress(objects)
	if _, err := c.Fill(objects, 10); err != nil {
		t.Fatal(err)
	}
	return c
}

// held adds up what the objects of the newest state take.
func held(c *Cache) (bytes int64) {
	for o := range c.Current().Range("", "") {
		bytes += o.HeldBytes()
	}
	return bytes + c.dictionaryBytes()
}

// checkHeld compares the counter with the sum.
func checkHeld(t *testing.T, c *Cache) {
	t.Helper()
	if got, want := c.Stats().HeldBytes, held(c); got != want {
		t.Errorf("%d bytes are counted, and the objects take %d", got, want)
	}
}

// TestListedObjectsAreCompressed: what the cache is filled with takes a fourth.
func TestListedObjectsAreCompressed(t *testing.T) {
	c := filledWith(t, Options{CompressObjects: true}, 3000)
	plain := filledWith(t, Options{}, 3000)
	checkHeld(t, c)
	checkHeld(t, plain)
	s := c.Stats()
	if s.HeldBytes > s.ObjectBytes/4 {
		t.Errorf("objects of %d bytes take %d", s.ObjectBytes, s.HeldBytes)
	}
	if p := plain.Stats(); p.ObjectBytes != s.ObjectBytes || p.HeldBytes != p.ObjectBytes {
		t.Errorf("without compression, objects of %d bytes take %d; with it they have %d", p.ObjectBytes, p.HeldBytes, s.ObjectBytes)
	}
	for o := range c.Current().Range("", "") {
		if same, _ := plain.Current().Get(o.Key); !bytes.Equal(o.JSON(), same.JSON()) {
			t.Fatalf("%s is %s, want %s", o.Key, o.JSON(), same.JSON())
		}
	}
}

// TestWrittenObjectsAreCompressedLater: an object is compressed when its event has left
// the log, and what is in the log is not.
func TestWrittenObjectsAreCompressedLater(t *testing.T) {
	const history = 100
	c := filledWith(t, Options{CompressObjects: true, HistoryEvents: history}, 0)
	for i := range 3000 {
		o := replicaObject(t, c, i, "Running", storage.Revision(11+i))
		c.Apply([]Change{{Key: o.Key, Object: o, Revision: o.Revision}})
		checkSometimes(t, c, i)
	}
	checkHeld(t, c)
	s := c.Stats()
	if s.HeldBytes > s.ObjectBytes/2 { // as much as coldBatch waits
		t.Errorf("objects of %d bytes take %d", s.ObjectBytes, s.HeldBytes)
	}
	for p := c.log.Oldest(); p < c.log.End(); p++ {
		if o := c.log.At(p).Object; !o.Compressible() {
			t.Fatalf("%s is compressed, and its event is in the log", o.Key)
		}
	}
	for i := range 3000 {
		key, _ := replica(i, "")
		c.Apply([]Change{gone(key, storage.Revision(4000+i))})
		checkSometimes(t, c, i)
	}
	if s := c.Stats(); s.ObjectBytes != 0 || s.HeldBytes != c.dictionaryBytes() {
		t.Errorf("%d bytes of objects, %d held, are counted when there is none", s.ObjectBytes, s.HeldBytes)
	}
}

func checkSometimes(t *testing.T, c *Cache, i int) {
	t.Helper()
	if i%500 == 0 {
		checkHeld(t, c)
	}
}

// TestShortenedLogsCompress: a cache in which nothing happens compresses what another one's
// events have made its log evict.
func TestShortenedLogsCompress(t *testing.T) {
	budget := NewBudget(BudgetOptions{HistoryBytes: 3 * minHistory})
	opts := Options{CompressObjects: true, Budget: budget}
	idle, busy := filledWith(t, opts, 0), filledWith(t, opts, 0)
	revision := storage.Revision(11)
	for _, c := range []*Cache{idle, busy} {
		for i := 0; c.ObjectBytes() < 2*minHistory; i++ {
			o := replicaObject(t, c, i, "Running", revision)
			c.Apply([]Change{{Key: o.Key, Object: o, Revision: revision}})
			revision++
		}
		if c == idle && idle.Stats().HeldBytes != idle.ObjectBytes() {
			t.Fatal("objects were compressed that the log has")
		}
	}
	checkHeld(t, idle)
	if s := idle.Stats(); s.HeldBytes > s.ObjectBytes-minHistory/2 {
		t.Errorf("objects of %d bytes take %d, with a log of %d", s.ObjectBytes, s.HeldBytes, s.HistoryBytes)
	}
}

// TestObjectsThatAFillTakesOverAreCompressed: the fill has dropped their events.
func TestObjectsThatAFillTakesOverAreCompressed(t *testing.T) {
	const n = 1000
	c := filledWith(t, Options{CompressObjects: true}, 0)
	for i := range n {
		o := replicaObject(t, c, i, "Running", storage.Revision(11+i))
		c.Apply([]Change{{Key: o.Key, Object: o, Revision: o.Revision}})
	}
	var taken []*Object
	for o := range c.Current().Range("", "") {
		if len(taken) < n-100 {
			taken = append(taken, o)
		}
	}
	c.Compress(taken) // which leaves them as they are: their events are in the log
	if s := c.Stats(); s.HeldBytes != s.ObjectBytes {
		t.Fatalf("objects of %d bytes take %d before the fill", s.ObjectBytes, s.HeldBytes)
	}
	if _, err := c.Refill(taken, 11+n, true); err != nil {
		t.Fatal(err)
	}
	checkHeld(t, c)
	if s := c.Stats(); s.HeldBytes > s.ObjectBytes/2 {
		t.Errorf("objects of %d bytes take %d", s.ObjectBytes, s.HeldBytes)
	}
}

// TestFewObjectsAreNotCompressed: a dictionary would take more than it saves.
func TestFewObjectsAreNotCompressed(t *testing.T) {
	c := filledWith(t, Options{CompressObjects: true}, 20)
	if s := c.Stats(); s.HeldBytes != s.ObjectBytes {
		t.Errorf("objects of %d bytes take %d", s.ObjectBytes, s.HeldBytes)
	}
}

// TestSecretsAreNotCompressed: a dictionary would hold what was deleted.
func TestSecretsAreNotCompressed(t *testing.T) {
	secrets := *podResource()
	secrets.Plural = "secrets"
	c := New(&secrets, Options{CompressObjects: true, CompressAtOnce: true, HistoryEvents: 1})
	objects := replicas(t, c, 1000)
	c.Compress(objects)
	if _, err := c.Fill(objects, 10); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		o := replicaObject(t, c, i, "Running", storage.Revision(11+i))
		c.Apply([]Change{{Key: o.Key, Object: o, Revision: o.Revision}})
	}
	for o := range c.Current().Range("", "") {
		if o.HeldBytes() != int64(o.Size()) {
			t.Fatalf("%s is compressed", o.Key)
		}
	}
	if s := c.Stats(); s.HeldBytes != s.ObjectBytes {
		t.Errorf("objects of %d bytes take %d", s.ObjectBytes, s.HeldBytes)
	}
}

// TestCompressedAttributesHoldNoJSON: otherwise the JSON would stay in memory.
func TestCompressedAttributesHoldNoJSON(t *testing.T) {
	c := New(podResource(), Options{CompressObjects: true})
	objects := replicas(t, c, 1000)
	var texts [][]byte
	for _, o := range objects {
		texts = append(texts, o.JSON())
	}
	c.Compress(objects)
	for i, o := range objects {
		if o.Compressible() || o.HeldBytes() >= int64(o.Size()) {
			t.Fatalf("%s is not compressed", o.Key)
		}
		checkApart(t, texts[i], append(stringsOf(o), o.Key)...)
	}
}

// TestKeysHoldNoJSON: an object without a namespace may come with its name for a key, as those
// that a relay receives do.
func TestKeysHoldNoJSON(t *testing.T) {
	c := New(nodeResource(), Options{CompressObjects: true})
	var texts [][]byte
	for i := range 200 {
		json := fmt.Appendf(nil, `{"kind":"Node","apiVersion":"v1","metadata":{"resourceVersion":"%d","name":"node-%d","uid":"u%d","managedFields":%s}}`, 11+i, i, i, managed)
		attributes, err := c.Resource().Attributes(json)
		if err != nil {
			t.Fatal(err)
		}
		o, err := NewObject(attributes.Name, storage.Revision(11+i), attributes, json)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, json)
		c.Apply([]Change{{Key: o.Key, Object: o, Revision: o.Revision}})
	}
	for key, o := range c.Tree().Range("", "") {
		checkApart(t, texts[o.Revision-11], append(stringsOf(o), o.Key, key)...)
	}
}

// stringsOf are the strings of an object's attributes.
func stringsOf(o *Object) []string {
	list := append([]string{o.Attributes.Name, o.Attributes.Namespace, o.Attributes.UID}, o.Attributes.Fields...)
	for _, l := range o.Attributes.Labels {
		list = append(list, l.Key, l.Value)
	}
	return list
}

// checkApart fails if a string lies in the JSON.
func checkApart(t *testing.T, json []byte, list ...string) {
	t.Helper()
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(json)))
	for _, s := range list {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(s))); at >= begin && at < begin+uintptr(len(json)) {
			t.Fatalf("%q lies in the JSON %s", s, json)
		}
	}
}

// TestCompressionIsInvisible: caches with and without it show the same bytes to all
// readers, whatever happens to the objects.
func TestCompressionIsInvisible(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 17))
		const n = 60
		opts := Options{HistoryEvents: 40}
		plain := filledWith(t, opts, n)
		opts.CompressObjects, opts.CompressAtOnce = true, true
		compressed := filledWith(t, opts, n)
		both := []*Cache{plain, compressed}
		var live [2]*Watcher
		for i, c := range both {
			live[i] = watching(t, c, WatchOptions{After: 10})
		}
		for revision := storage.Revision(11); revision < 400; revision++ {
			i, deleted := random.IntN(n), random.IntN(5) == 0
			for _, c := range both {
				change := Change{Object: replicaObject(t, c, i, fmt.Sprint("Phase", revision), revision), Revision: revision}
				if change.Key = change.Object.Key; deleted {
					change.Object = nil
				}
				c.Apply([]Change{change})
			}
			if random.IntN(10) == 0 {
				compare(t, "live events", shownEvents(t, live[0]), shownEvents(t, live[1]))
			}
			if random.IntN(20) == 0 {
				at := max(10, revision-storage.Revision(random.IntN(30)))
				compare(t, "an exact read", shownAt(t, plain, at), shownAt(t, compressed, at))
				compare(t, "coalesced history", resumed(t, plain, 11), resumed(t, compressed, 11))
				compare(t, "initial events", begun(t, plain), begun(t, compressed))
			}
		}
		checkHeld(t, compressed)
		if s := compressed.Stats(); s.HeldBytes == s.ObjectBytes {
			t.Error("nothing is compressed")
		}
	}
}

func compare(t *testing.T, what, plain, compressed string) {
	t.Helper()
	if plain != compressed {
		t.Fatalf("%s: without compression\n%s\nand with it\n%s", what, plain, compressed)
	}
}

func shownEvents(t *testing.T, w *Watcher) string {
	t.Helper()
	var b strings.Builder
	var scratch []byte
	for _, e := range drain(t, w) {
		fmt.Fprintf(&b, "%s@%d %s\n", e.Type, e.Revision, e.Object.ReadJSON(&scratch))
		if e.Previous != nil {
			fmt.Fprintf(&b, "before: %s\n", e.Previous.AppendJSON(nil))
		}
	}
	return b.String()
}

func resumed(t *testing.T, c *Cache, after storage.Revision) string {
	t.Helper()
	w, err := c.Resume(t.Context(), WatchOptions{After: after})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return shownEvents(t, w)
}

func begun(t *testing.T, c *Cache) string {
	t.Helper()
	current := c.Current()
	w := watching(t, c, WatchOptions{Initial: &current})
	defer w.Close()
	return shownEvents(t, w)
}

func shownAt(t *testing.T, c *Cache, revision storage.Revision) string {
	t.Helper()
	s, err := c.Exact(t.Context(), revision)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for o := range s.Range("", "") {
		fmt.Fprintf(&b, "%s\n", o.JSON())
	}
	return b.String()
}

// TestReadersAndCompression: an object may be read while it is compressed.
func TestReadersAndCompression(t *testing.T) {
	c := New(podResource(), Options{CompressObjects: true})
	objects := replicas(t, c, 500)
	var want []string
	for _, o := range objects {
		o.OwnAttributes()
		want = append(want, string(o.JSON()))
	}
	done := make(chan string, 4)
	for range cap(done) {
		go func() {
			var scratch []byte
			for round := range 20 {
				for i, o := range objects {
					if got := string(o.ReadJSON(&scratch)); got != want[i] || o.Size() != len(got) {
						done <- fmt.Sprintf("round %d: %s is %s", round, o.Key, got)
						return
					}
				}
			}
			done <- ""
		}()
	}
	compressor := state.NewCompressor(state.CompressorOptions{Always: true})
	for _, made := range compressor.Compress(objects, 1<<30) {
		made.Install()
	}
	for range cap(done) {
		if wrong := <-done; wrong != "" {
			t.Error(wrong)
		}
	}
}

// BenchmarkCompression is what an object costs to compress and to read.
func BenchmarkCompression(b *testing.B) {
	c := New(podResource(), Options{CompressObjects: true})
	objects := replicas(b, c, 5000)
	b.Run("compress", func(b *testing.B) {
		for b.Loop() {
			made := state.NewCompressor(state.CompressorOptions{}).Compress(objects, 1<<30)
			b.ReportMetric(float64(len(made)), "compressed")
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(objects)), "ns/object")
	})
	c.Compress(objects)
	var before, after int64
	for _, o := range objects {
		before, after = before+int64(o.Size()), after+o.HeldBytes()
	}
	b.Run("read", func(b *testing.B) {
		var scratch []byte
		for b.Loop() {
			for _, o := range objects {
				o.ReadJSON(&scratch)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(objects)), "ns/object")
		b.ReportMetric(float64(before)/float64(after), "ratio")
	})
}
