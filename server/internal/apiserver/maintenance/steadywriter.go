package maintenance

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

const (
	// minRate is how many bytes of a snapshot a client must read in a second. Until a
	// snapshot is sent, etcd cannot use the pages again that compaction frees, and other
	// maintenance waits.
	minRate = 512 << 10
	// maxDelay is how far behind minRate a client may be.
	maxDelay = 30 * time.Second
)

var errSlow = fmt.Errorf("the client read less than %d kB a second: a snapshot that is being sent keeps the storage from using freed pages again", minRate>>10)

// steadyWriter writes an answer, as long as its client reads at minRate. Only the time
// that its writes take counts: the storage may be slow.
type steadyWriter struct {
	answer  http.ResponseWriter
	control *http.ResponseController
	left    time.Duration // that writes may take, at most maxDelay
}

func newSteadyWriter(w http.ResponseWriter) *steadyWriter {
	return &steadyWriter{answer: w, control: http.NewResponseController(w), left: maxDelay}
}

// Write implements io.Writer. It fails with errSlow.
func (w *steadyWriter) Write(p []byte) (int, error) {
	w.left = min(maxDelay, w.left+time.Duration(len(p))*time.Second/minRate)
	began := time.Now()
	if err := w.control.SetWriteDeadline(began.Add(w.left)); err != nil {
		return 0, err
	}
	n, err := w.answer.Write(p)
	w.left -= time.Since(began)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, errSlow
	}
	// A connection of HTTP/1.1 would keep the deadline for its next answer.
	return n, errors.Join(err, w.control.SetWriteDeadline(time.Time{}))
}
