package recording

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
)

// craft returns a recording of blocks, each with a payload.
func craft(t *testing.T, blocks ...func(*compressor) []byte) []byte {
	t.Helper()
	c, err := newCompressor()
	if err != nil {
		t.Fatal(err)
	}
	file := []byte(fileMagic)
	for _, block := range blocks {
		file = append(file, block(c)...)
	}
	return file
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestIndexOfTooMany says that it has so many blocks that their size overflows.
func TestIndexOfTooMany(t *testing.T) {
	const raw = 61_000_000
	count := (uint64(1)<<32 + raw + placedSize - 1) / placedSize
	size := uint32(count * placedSize % (1 << 32)) // at least raw
	file := craft(t, func(c *compressor) []byte {
		return c.block(header{kind: indexBlock, count: uint32(count)}, make([]byte, size))
	})
	file = append(file, trailer(int64(len(fileMagic)))...)
	bytesOf := allocated(func() {
		if _, err := NewReader(bytes.NewReader(file), int64(len(file))); err == nil {
			t.Error("it is opened")
		}
	})
	if bytesOf > 1<<30 {
		t.Errorf("a file of %d bytes takes %d MiB", len(file), bytesOf>>20)
	}
}

// TestTooManyResources: a small file may hold very many.
func TestTooManyResources(t *testing.T) {
	for name, list := range map[string]string{
		"in one block": "[{}" + strings.Repeat(",{}", 3<<20) + "]",
		"in many":      "[{}" + strings.Repeat(",{}", 50_000) + "]",
	} {
		blocks := make([]func(*compressor) []byte, 10)
		for i := range blocks {
			blocks[i] = func(c *compressor) []byte { return c.block(header{kind: resourcesBlock, count: 1}, []byte(list)) }
		}
		file := craft(t, blocks...)
		bytesOf := allocated(func() {
			if _, err := NewReader(bytes.NewReader(file), int64(len(file))); err == nil || !strings.Contains(err.Error(), "more than") {
				t.Errorf("%s: %v", name, err)
			}
		})
		if bytesOf > 200<<20 {
			t.Errorf("%s: a file of %d bytes takes %d MiB", name, len(file), bytesOf>>20)
		}
	}
}
