package tested

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/levelwire/levelwire/benchmarks/load"
)

// History is how many bytes of changes our server keeps for watches that resume, by its
// own metrics; 0 of another server.
func (t *Server) History(ctx context.Context) (sum int64, err error) {
	if t.Side != Ours {
		return 0, nil
	}
	err = t.With(ctx, func(c *load.Conn) error {
		answer := c.Do(ctx, load.Request{Path: "/metrics"})
		if err := answer.Check(0); err != nil {
			return err
		}
		for line := range bytes.Lines(answer.Body) {
			name, value, ok := bytes.Cut(bytes.TrimSpace(line), []byte("} "))
			if !ok || !bytes.HasPrefix(name, []byte("levelwire_cache_history_bytes{")) {
				continue
			}
			n, err := strconv.ParseFloat(string(value), 64)
			if err != nil {
				return fmt.Errorf("metrics: %s: %w", line, err)
			}
			sum += int64(n)
		}
		return nil
	})
	return sum, err
}
