package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/internal/debugapi"
)

const (
	// informersTimeout bounds how long top waits for a program.
	informersTimeout = 2 * time.Second
	// maxInformersBytes bounds what it reads of one.
	maxInformersBytes = 16 << 20
)

// program is what one program says of its informers.
type program struct {
	url string
	debugapi.Informers
	err error
}

// readInformers asks programs. One that cannot be asked is shown with the reason.
func (s *topSample) readInformers(ctx context.Context, urls []string) {
	for _, url := range urls {
		p := program{url: url}
		p.err = p.read(ctx)
		s.programs = append(s.programs, p)
	}
}

func (p *program) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, informersTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // It is only read.
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", p.url, answer.Status)
	}
	return json.NewDecoder(io.LimitReader(answer.Body, maxInformersBytes)).Decode(&p.Informers)
}

// handlerRow is a handler of an informer of a program.
type handlerRow struct {
	name string
	debugapi.Handler
}

// programs shows informers with their indexes, and the handlers, the slowest first.
func (v *topView) programs(programs []program) {
	if len(programs) == 0 {
		return
	}
	var handlers []handlerRow
	v.heading("%-38s %9s %10s %9s %9s %8s  %s", "INFORMERS", "OBJECTS", "SIZE", "DELTAFIFO", "AGE", "LISTS", "INDEXES")
	for _, p := range programs {
		if p.err != nil {
			v.line(v.colours.In(cli.Red, cli.OneLine(p.err)))
			continue
		}
		for i := range p.Items {
			item := &p.Items[i]
			var indexes []string
			for _, index := range item.Indexes {
				indexes = append(indexes, fmt.Sprintf("%s %d", cli.Printable(index.Name), index.Values))
			}
			age := "never"
			if item.AgeMillis >= 0 {
				age = roundDuration(time.Duration(item.AgeMillis) * time.Millisecond)
			}
			v.line(fmt.Sprintf("%-38s %9d %10s %9d %9s %8d  %s", shortened(p.Program+" "+item.Name, 38), item.Objects, cli.Mebibytes(item.Bytes), item.Queued, age, item.Lists, strings.Join(indexes, ", ")))
			for _, h := range item.Handlers {
				handlers = append(handlers, handlerRow{p.Program + " " + item.Name + " " + h.Name, h})
			}
		}
	}
	slices.SortFunc(handlers, func(a, b handlerRow) int {
		return cmp.Or(cmp.Compare(b.LagMillis, a.LagMillis), cmp.Compare(b.BusyMillis, a.BusyMillis), strings.Compare(a.name, b.name))
	})
	v.heading("%-52s %8s %8s %10s %10s %10s", "HANDLERS, SLOW FIRST", "QUEUED", "FOR", "MEAN", "CALLS", "COALESCED")
	for i := range handlers[:min(len(handlers), v.rows)] {
		h := &handlers[i]
		lag, mean := "-", "-"
		if h.LagMillis > 0 {
			lag = roundDuration(time.Duration(h.LagMillis) * time.Millisecond)
		}
		if h.Delivered > 0 {
			mean = roundDuration(time.Duration(h.BusyMillis) * time.Millisecond / time.Duration(h.Delivered))
		}
		text := fmt.Sprintf("%-52s %8d %8s %10s %10d %10d", shortened(h.name, 52), h.Queued, lag, mean, h.Delivered, h.Coalesced)
		if h.LagMillis >= 1000 || h.Error != "" {
			text = v.colours.In(cli.Yellow, text)
		}
		v.line(text)
	}
}
