package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/levelwire/levelwire/tests/upstream/cluster"
)

// errorLine is a line of klog at level error: the message follows the file and the line that print it.
var errorLine = regexp.MustCompile(`^E\d{4} [\d:.]+ +\d+ ([\w.]+:\d+)\] (.*)$`)

// variable is what differs between two lines that say the same, beside words.
var variable = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`https?://[^/"\s]+`), "SERVER"},
	{regexp.MustCompile(`-[0-9a-f]{8,10}(-[a-z0-9]{5})?\b`), "-*"},
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}_`), "-*_"}, // the end of a generated name in that of a container
	{regexp.MustCompile(`\b(read|written) version: \d+`), "$1 version: N"},
	{regexp.MustCompile(`_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}_`), "_UID_"},
	{regexp.MustCompile(`\bworker=\d+`), "worker=N"},
	{regexp.MustCompile(`\b0x[0-9a-f]+\b`), "POINTER"},
	{regexp.MustCompile(`resourceVersion[=:]\s*"?\d+"?`), "resourceVersion=N"},
	{regexp.MustCompile(`\d+(\.\d+)?(ns|µs|ms|s|m)\b`), "DURATION"},
	{regexp.MustCompile(`/tmp/[^\s"]+`), "FILE"},
}

// errorLines counts what a component has logged as errors, without what differs each time. Files beside the log are
// those of its cluster.
func errorLines(file string) (map[string]int, error) {
	log, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	counts := map[string]int{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		found := errorLine.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		text := inWords(strings.ReplaceAll(found[2], filepath.Dir(file), "FOLDER"))
		for _, v := range variable {
			text = v.pattern.ReplaceAllString(text, v.name)
		}
		counts[found[1]+"] "+text]++
	}
	return counts, lines.Err()
}

// logs are those of components from some moment on.
type logs map[string]logPosition // by the component's name

// logPosition is where in a file a log begins.
type logPosition struct {
	file string
	at   int64
}

// newLogs returns what processes log from now on.
func newLogs(processes []*cluster.Process) (logs, error) {
	all := logs{}
	for _, p := range processes {
		info, err := os.Stat(p.Log())
		if err != nil {
			return nil, err
		}
		all[p.Name()] = logPosition{p.Log(), info.Size()}
	}
	return all, nil
}

// await waits until a component has logged a text so many times, and returns an error if it has logged it more often. The
// arguments are the component, the number and the text, with spaces in between.
func (l logs) await(ctx context.Context, arguments string) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	component, rest, _ := strings.Cut(arguments, " ")
	number, text, _ := strings.Cut(rest, " ")
	want, err := strconv.Atoi(number)
	if err != nil || text == "" {
		return fmt.Errorf("logged %s: it is a component, a number and a text", arguments)
	}
	log, runs := l[component]
	if !runs {
		return fmt.Errorf("logged %s: no component has this name", arguments)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		switch count, err := log.count(text); {
		case err != nil:
			return err
		case count == want:
			return nil
		case count > want:
			return fmt.Errorf("%s has logged %q %d times, and not %d", component, text, count, want)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s has not logged %q %d times: %w", component, text, want, ctx.Err())
		}
	}
}

// count returns how often a log has a text.
func (p logPosition) count(text string) (int, error) {
	log, err := os.Open(p.file)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	_, err = log.Seek(p.at, io.SeekStart)
	content, failed := io.ReadAll(log)
	return bytes.Count(content, []byte(text)), errors.Join(err, failed)
}
