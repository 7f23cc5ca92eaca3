package encoding

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/levelwire/levelwire/server/internal/gzipblock"
)

// CompressFrom is the size in bytes from which answers to GET are compressed, as in
// Kubernetes: for less it is not worth the client's time.
const CompressFrom = 128 << 10

// AcceptsGzip reports whether the client accepts gzip. Only an explicit mention
// counts.
func AcceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		q, weighted := strings.CutPrefix(strings.TrimSpace(params), "q=")
		if !weighted {
			return true
		}
		quality, err := strconv.ParseFloat(q, 64)
		return err == nil && quality > 0
	}
	return false
}

func writeGzip(w http.ResponseWriter, code int, body []byte) {
	startGzip(w)
	w.WriteHeader(code)
	z := gzipblock.NewWriter(w)
	defer z.Release()
	if _, err := z.Write(body); err == nil {
		_ = z.Close() // fails only with the connection
	}
}

// startGzip sets the headers of a compressed answer.
func startGzip(w http.ResponseWriter) {
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	w.Header().Del("Content-Length")
}
