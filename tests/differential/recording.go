package differential

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// recording is what the judge has said: what it serves, what full objects it accepts, and
// its answers. Answers to questions about an object that has changed since are forgotten.
type recording struct {
	Catalog *catalog                             `json:"catalog"`
	Objects map[string]map[string]map[string]any `json:"objects"` // by base and kind: what the answers are about
	Answers map[string]*answer                   `json:"answers"` // by the request's name

	mu      sync.Mutex
	changed bool // since it was read
}

func newRecording() *recording {
	return &recording{Objects: map[string]map[string]map[string]any{}, Answers: map[string]*answer{}}
}

// openRecording reads a file; one that is not there is an empty recording.
func openRecording(name string) (*recording, error) {
	r := newRecording()
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	decoder := json.NewDecoder(unzipped)
	decoder.UseNumber()
	if err := decoder.Decode(r); err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to ask again", name, err)
	}
	if r.Catalog == nil {
		return r, nil
	}
	return r, r.Catalog.load()
}

// save writes the recording in place of the file.
func (r *recording) save(name string) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	next := name + ".new"
	file, err := os.Create(next)
	if err != nil {
		return err
	}
	zipped, _ := gzip.NewWriterLevel(file, gzip.BestCompression) // the level is valid
	r.mu.Lock()
	err = json.NewEncoder(zipped).Encode(r)
	r.mu.Unlock()
	if err := errors.Join(err, zipped.Close(), file.Close()); err != nil {
		return err
	}
	return os.Rename(next, name)
}

// of returns what a recording needs to have of requests, with their answers normalised.
func (r *recording) of(requests []*request) (*recording, error) {
	part := newRecording()
	part.Catalog, part.Objects = r.Catalog, r.Objects
	for _, q := range requests {
		sent, err := q.body(r.base(q))
		if err != nil {
			return nil, err
		}
		a := r.answer(q.String())
		if a == nil {
			return nil, fmt.Errorf("%v was not asked", q)
		}
		a = normalise(a, q.kind, sent)
		a.forgetTimes()
		part.keep(q.String(), a)
	}
	return part, nil
}

// forgetTimes: of a normalised answer nothing is the time of the request any more.
func (a *answer) forgetTimes() {
	if a == nil {
		return
	}
	a.At = time.Time{}
	a.After.forgetTimes()
	for _, step := range a.Steps {
		step.forgetTimes()
	}
}

// base returns the object that a request edits.
func (r *recording) base(q *request) map[string]any {
	return r.Objects[q.base][q.kind.String()]
}

// set keeps the object of a base.
func (r *recording) set(o *object) {
	if r.Objects[o.base] == nil {
		r.Objects[o.base] = map[string]map[string]any{}
	}
	r.Objects[o.base][o.kind.String()], r.changed = o.value, true
}

// requests are the requests whose answers there are, in the order of their names.
func (r *recording) requests() ([]*request, error) {
	var list []*request
	for _, name := range sortedAnswers(r) {
		q, err := parseRequest(r.Catalog, name)
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, nil
}

func sortedAnswers(r *recording) []string { return slices.Sorted(maps.Keys(r.Answers)) }

func (r *recording) answer(name string) *answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Answers[name]
}

func (r *recording) keep(name string, a *answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Answers[name], r.changed = a, true
}
