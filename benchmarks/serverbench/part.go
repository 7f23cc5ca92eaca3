package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"github.com/levelwire/levelwire/benchmarks/workload"
)

const (
	pageSize  = 500
	askedFor  = 2 * time.Second // as long as a client asks for one part after another
	perList   = "server CPU ms per list"
	perAnswer = "median wall ms"
	inAnswer  = "objects in each"
	ofWhole   = "÷ the same in one answer"
)

// partTask is what a client asks for that wants only a part of a collection.
type partTask struct {
	Access tested.Access
	// Paths are lists of a part each, asked for one after the other, again and again
	// for as long as For says.
	Paths []string
	For   time.Duration
	// Page is the path of a list that is read to its end, in pages.
	Page string
}

// partsRead is what that client received.
type partsRead struct {
	CPU     time.Duration // of the client's process
	Answers int
	Objects int // in all answers, or in the pages
	Bytes   int64
	Median  time.Duration // of an answer
}

// partGroup is lists of a part of the pods, which should cost what they return.
func partGroup(p *plan) *group {
	return &group{name: "part", title: "Lists of a part of all pods", rows: []*row{
		paging(),
		selecting("of a node: spec.nodeName", 1.5, p.pods, nodePath),
		selecting("of a label", 1.5, p.pods, labelPath),
		selecting("of a name, in all namespaces", 0.1, p.pods, namePath),
	}}
}

func nodePath(i int) string {
	return listPath + "?fieldSelector=" + url.QueryEscape("spec.nodeName="+workload.Node(i))
}

func labelPath(i int) string {
	labels := workload.Small(i).Labels
	const key = "pod-template-hash"
	return listPath + "?labelSelector=" + url.QueryEscape(key+"="+labels[key])
}

func namePath(i int) string {
	return listPath + "?fieldSelector=" + url.QueryEscape("metadata.name="+workload.Name(i))
}

// paging is the row of a client that lists all pods in pages, beside the same list in
// one answer.
func paging() *row {
	return &row{
		name:       fmt.Sprintf("all, in pages of %d, JSON", pageSize),
		quantities: []quantity{{name: serverCPU}, {name: ofWhole, aim: aim{atMost: 1.3}}, {name: wallTime}, {name: megabytes}, {name: clientCPU}},
		measure: func(ctx context.Context, b *bench, t *tested.Server) (result, error) {
			whole, err := b.read(ctx, t, getTask{Path: listPath, Accept: jsonType, Clients: 1})
			if err != nil {
				return result{}, fmt.Errorf("in one answer: %w", err)
			}
			begun := time.Now()
			cpu, got, err := b.readParts(ctx, t, partTask{Page: listPath})
			if err == nil && got.Objects != t.Objects {
				err = fmt.Errorf("the pages have %d objects, not %d", got.Objects, t.Objects)
			}
			return result{Values: map[string]float64{
				serverCPU: cpu.Seconds(), ofWhole: cpu.Seconds() / whole.Values[serverCPU], wallTime: time.Since(begun).Seconds(),
				megabytes: mb(got.Bytes), clientCPU: got.CPU.Seconds(),
			}}, err
		},
	}
}

// selecting is the row of a client that asks for one selection after another.
func selecting(name string, most float64, pods int, path func(i int) string) *row {
	return &row{
		name:       name,
		quantities: []quantity{{name: perList, aim: aim{atMost: most}}, {name: perAnswer}, {name: inAnswer}},
		measure: func(ctx context.Context, b *bench, t *tested.Server) (result, error) {
			return b.selected(ctx, t, pods, path)
		},
	}
}

// selected measures lists of parts, after one list of each that is not measured.
func (b *bench) selected(ctx context.Context, t *tested.Server, pods int, path func(i int) string) (result, error) {
	task := partTask{For: askedFor}
	const different = 100
	for n := range different {
		task.Paths = append(task.Paths, path(n*(max(pods/different, 1))%pods))
	}
	first := task
	first.Paths, first.For = task.Paths[:1], 0
	if _, _, err := b.readParts(ctx, t, first); err != nil {
		return result{}, err
	}
	cpu, got, err := b.readParts(ctx, t, task)
	if err != nil {
		return result{}, err
	}
	return result{Values: map[string]float64{
		perList: cpu.Seconds() * 1e3 / float64(got.Answers), perAnswer: got.Median.Seconds() * 1e3,
		inAnswer: float64(got.Objects) / float64(got.Answers),
	}}, nil
}

// readParts has a client read parts, and returns the server's processor time.
func (b *bench) readParts(ctx context.Context, t *tested.Server, task partTask) (time.Duration, partsRead, error) {
	task.Access = t.Access
	var got partsRead
	before, err := t.CPU()
	if err != nil {
		return 0, got, err
	}
	if err := process.Run(ctx, b.dir, "part", task, &got); err != nil {
		return 0, got, err
	}
	after, err := t.CPU()
	return after - before, got, err
}

// part is the process of a client that reads parts.
func part(ctx context.Context, p *process.Parent) error {
	var task partTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	c, err := dial(ctx, task.Access)
	if err != nil {
		return err
	}
	defer c.Close()
	var got partsRead
	if task.Page != "" {
		err = got.pages(ctx, c, task.Page)
	} else {
		err = got.lists(ctx, c, task.Paths, task.For)
	}
	if err != nil {
		return err
	}
	if got.CPU, err = measure.OwnCPU(); err != nil {
		return err
	}
	return p.Send(got)
}

// lists asks for all paths in turn, once at least.
func (r *partsRead) lists(ctx context.Context, c *load.Conn, paths []string, within time.Duration) error {
	var took []float64
	objects := make([]int, len(paths))
	for begun := time.Now(); r.Answers == 0 || time.Since(begun) < within; r.Answers++ {
		i := r.Answers % len(paths)
		sent := time.Now()
		answer, err := r.ask(ctx, c, paths[i])
		if err != nil {
			return err
		}
		took = append(took, time.Since(sent).Seconds())
		if objects[i] == 0 { // counted once, as that costs the client time
			if objects[i], err = countItems(bufio.NewReader(bytes.NewReader(answer))); err != nil {
				return err
			}
		}
		r.Objects += objects[i]
	}
	r.Median = time.Duration(measure.Median(took) * float64(time.Second))
	return nil
}

// pages follows a list to its end.
func (r *partsRead) pages(ctx context.Context, c *load.Conn, path string) error {
	next := ""
	for {
		answer, err := r.ask(ctx, c, path+"?limit="+strconv.Itoa(pageSize)+next)
		if err != nil {
			return err
		}
		r.Answers++
		token, err := nextPage(answer)
		if err != nil {
			return err
		}
		if token == "" {
			last, err := countItems(bufio.NewReader(bytes.NewReader(answer)))
			r.Objects += last
			return err
		}
		r.Objects += pageSize
		next = "&continue=" + url.QueryEscape(token)
	}
}

func (r *partsRead) ask(ctx context.Context, c *load.Conn, path string) ([]byte, error) {
	answer := c.Do(ctx, load.Request{Path: path, Header: []hpack.HeaderField{{Name: "accept", Value: jsonType}}})
	if err := answer.Check(200); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r.Bytes += int64(len(answer.Body))
	return answer.Body, nil
}

// nextPage reads the token in the metadata of a page, which come before its items; ""
// at the end.
func nextPage(page []byte) (token string, err error) {
	const mark = `"metadata":`
	i := bytes.Index(page, []byte(mark))
	if i < 0 {
		return "", errors.New("a page has no metadata")
	}
	var metadata struct {
		Continue string `json:"continue"`
	}
	err = json.NewDecoder(bytes.NewReader(page[i+len(mark):])).Decode(&metadata)
	return metadata.Continue, err
}
