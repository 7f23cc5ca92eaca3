package atomicfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a replacement of a file that is being written. It is not safe for
// concurrent use.
type File struct {
	path string
	file *os.File // nil after Commit or Abort
}

// Create begins to replace the file at path, which stays as it is until
// Commit. The caller must end with Commit or Abort.
func Create(path string, mode fs.FileMode) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), temporary(path))
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	created := &File{path: path, file: f}
	if err := f.Chmod(mode); err != nil {
		created.Abort()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return created, nil
}

// temporary is the pattern of the names under which a replacement of path is
// written.
func temporary(path string) string { return "." + filepath.Base(path) + ".*" }

// Write implements io.Writer.
func (f *File) Write(data []byte) (int, error) {
	n, err := f.file.Write(data)
	if err != nil {
		err = fmt.Errorf("write %s: %w", f.path, err)
	}
	return n, err
}

// Commit makes what was written the content of the file. A crash leaves the
// old content or the new, never a part: the data is synced before the rename,
// and the directory after it. On an error the old content stays.
func (f *File) Commit() error {
	file, path := f.file, f.path
	f.file = nil
	err := file.Sync()
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Abort leaves the old content. It does nothing after Commit.
func (f *File) Abort() {
	if f.file == nil {
		return
	}
	_ = f.file.Close()
	_ = os.Remove(f.file.Name())
	f.file = nil
}

// Sweep removes what replacements of path left behind when the process died
// before Commit. It must not run while one is being written.
func Sweep(path string) error {
	left, err := filepath.Glob(filepath.Join(escape(filepath.Dir(path)), temporary(path)))
	if err != nil {
		return fmt.Errorf("sweep beside %s: %w", path, err)
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("sweep beside %s: %w", path, err)
		}
	}
	return nil
}

// escape keeps Glob from reading a folder's name as a pattern.
func escape(dir string) string {
	var out []byte
	for i := range len(dir) {
		if c := dir[i]; c == '*' || c == '?' || c == '[' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, dir[i])
	}
	return string(out)
}
