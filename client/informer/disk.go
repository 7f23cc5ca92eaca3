package informer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/internal/diskcache"
)

// DiskOptions keeps an informer's objects in a file, so that a process that
// starts again serves reads at once and resumes its watch in place of a list.
// docs/users/disk-cache.md says what is in the file.
type DiskOptions struct {
	// Directory is where the files are; it must exist, belong to this process
	// alone, and be as secret as the objects. Default: nothing is kept.
	Directory string
	// Interval is how often changes are saved, beside once after the first
	// list and once at the stop. Default 5 min; negative: only then.
	Interval time.Duration
	// Server distinguishes servers whose files share the directory. Default: "".
	Server string
	// Fingerprint changes when objects that were stored before cannot be used
	// any more: the version of a transform, for instance. A change of the Go
	// type is noticed without it. Default: "".
	Fingerprint string
	// Identify asks the server which cluster it is. A file of another one is
	// refused, as its resourceVersions mean nothing here. Default for a Factory:
	// the UID of the namespace kube-system; an informer made with New needs one.
	Identify func(ctx context.Context) (string, error)
	// Limits bound the files.
	Limits DiskLimits
}

// DiskLimits bound what is written to a file and read from one.
type DiskLimits struct {
	// ObjectBytes is the most that one encoded object may have. Default 64 MiB; at
	// most 1 GiB.
	ObjectBytes int64
	// FileBytes is the most that a file may have. Default 16 GiB.
	FileBytes int64
}

// DiskRefusedError is a cache file that cannot be used: Path, Reason ("foreign",
// "newer", "truncated", "corrupt" or "too large", fit for a metric's label) and
// Detail. A list follows, and a new file in its place.
type DiskRefusedError = diskcache.RefusedError

// DiskStats is what an informer's file did so far.
type DiskStats struct {
	Restored int   // objects that were read at the start
	Saves    int64 // files written
	Advances int64 // times when only the version had moved, and was noted
	Failures int64 // saves that failed
	Bytes    int64 // of the file
	// Refused is why the file could not be used at the start; nil if it was, or
	// if there was none.
	Refused *DiskRefusedError
	// Saved is when the state in the file was current.
	Saved time.Time
}

// KeepOnDisk keeps the informer's objects in a file; a Factory with
// Options.Disk does it. It must be called before the start.
//
// When the informer starts, what the file holds is in the Lister, and handlers
// get OnAdd for it with initial true, before the server is asked for anything
// but its identity. Until the server has confirmed the file's resourceVersion,
// by an event, a bookmark or the end of a watch in due time, Synced is not
// closed and Freshness says that the view is Restored. What
// was missed arrives as changes, without a list. If the server no longer has
// that resourceVersion, or the file is refused, a difference or a list follows;
// handlers are called for what differs only.
func (i *SharedInformer[T]) KeepOnDisk(opts DiskOptions) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase != idle {
		return fmt.Errorf("informer %s: a file must be set before the start", i.name)
	}
	if i.disk != nil {
		return fmt.Errorf("informer %s: it has a cache file already: Options.Disk of its factory, or an earlier KeepOnDisk", i.name)
	}
	if err := i.keepOnDisk(opts, i.name, ""); err != nil {
		return fmt.Errorf("informer %s: %w", i.name, err)
	}
	return nil
}

func (i *SharedInformer[T]) keepOnDisk(opts DiskOptions, resource, selection string) error {
	switch {
	case len(i.namespaceWatches) > 1:
		return errors.New("DiskOptions and ListOptions.Namespaces exclude each other: several watches cannot be resumed from one resourceVersion; use an informer for each namespace")
	case i.made.selection.Visible:
		return errors.New("DiskOptions and ListOptions.Visible exclude each other: what is in the file is what its user could see, and the next one may have other rights or groups")
	case opts.Directory == "":
		return errors.New("DiskOptions.Directory is empty: name a directory for the cache files")
	case opts.Identify == nil:
		return errors.New("DiskOptions.Identify is nil: it must say which cluster the server is")
	}
	if err := opts.validate(); err != nil {
		return err
	}
	c, err := newCodec[T]()
	if err != nil {
		return err
	}
	if i.noInterning {
		c = c.withoutInterning()
	}
	if opts.Interval == 0 {
		opts.Interval = 5 * time.Minute
	}
	d := &disk[T]{opts: opts, codec: c, log: i.log, idle: make(chan struct{}, 1)}
	d.identity = diskcache.Identity{Server: opts.Server, Resource: resource, Selection: selection, Encoding: c.name}
	if opts.Fingerprint != "" {
		d.identity.Encoding += " " + opts.Fingerprint
	}
	var objects T
	d.path = filepath.Join(opts.Directory, fileName(opts.Server, resource, selection, fmt.Sprintf("%T", objects)))
	i.disk = d
	return nil
}

// fileName is safe whatever a selector contains: a part for people, and a hash
// of everything. The type's shape is not in it, so that a file of an older one
// is replaced.
func fileName(server, resource, selection, typ string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{server, resource, selection, typ}, "\x00")))
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		default:
			return '-'
		}
	}, resource)
	readable = strings.Trim(readable, "-")
	return readable[:min(len(readable), 80)] + "-" + hex.EncodeToString(sum[:12]) + ".cache"
}

// disk is the file of one informer.
type disk[T client.Object] struct {
	opts     DiskOptions
	codec    codec[T]
	identity diskcache.Identity
	path     string
	log      *slog.Logger
	idle     chan struct{} // a token when the cache has settled

	// One goroutine at a time restores and saves; these are its own.
	cluster string             // "" until the server has said it
	written *diskcache.Written // what is in the file; nil: unknown
	version string             // in the file
	events  int64              // of the informer, when it was written

	mu     sync.Mutex
	counts DiskStats
}

func (d *disk[T]) stats() DiskStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

func (d *disk[T]) count(f func(*DiskStats)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.counts)
}

// settled is called by the informer's loop.
func (d *disk[T]) settled() {
	select {
	case d.idle <- struct{}{}:
	default:
	}
}

// open opens the file, if there is one to be used.
func (d *disk[T]) open() *diskcache.Reader {
	r, err := diskcache.Open(d.path, d.identity, diskcache.Limits(d.opts.Limits))
	if errors.Is(err, fs.ErrNotExist) {
		d.log.Info("no cache file yet: a list follows", "path", d.path)
		return nil
	}
	if err != nil {
		d.refused(err)
		return nil
	}
	return r
}

// refused says why the file is not used.
func (d *disk[T]) refused(err error) {
	var refused *diskcache.RefusedError
	if !errors.As(err, &refused) {
		refused = &diskcache.RefusedError{Path: d.path, Reason: diskcache.Corrupt, Detail: err.Error()}
	}
	d.count(func(s *DiskStats) { s.Refused = refused })
	d.log.Warn("the cache file cannot be used: a list follows", "reason", refused.Reason, "error", refused)
}

// load reads all objects. Only when it returns no error is the file sound.
func (d *disk[T]) load(ctx context.Context, r *diskcache.Reader) ([]T, error) {
	var objects []T
	decode := d.codec.decoder()
	for {
		data, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		obj, err := decode(data)
		if err != nil {
			return nil, &diskcache.RefusedError{Path: d.path, Reason: diskcache.Corrupt, Detail: fmt.Sprintf("object %d: %v", len(objects), err)}
		}
		objects = append(objects, obj)
		if len(objects)%1024 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	d.version = r.Version()
	if written, ok := r.Written(); ok {
		d.written = &written
	}
	return objects, nil
}
