package upstream

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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
